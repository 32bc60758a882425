//! Keys and signatures, made by OpenSSH as an operator would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The namespace of catalogues.
pub const NAMESPACE: &str = "gloveport-catalog";

/// A signing key of its own.
#[derive(Debug)]
pub struct Key {
    path: PathBuf,
}

impl Key {
    /// Makes an ed25519 key in that directory.
    pub fn make(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&path));
        Self { path }
    }

    /// Its line of a `trusted_signers` file.
    pub fn signer(&self, principal: &str) -> String {
        let public = fs::read_to_string(self.path.with_extension("pub")).expect("reading a public key");
        format!("{principal} namespaces=\"{NAMESPACE}\" {public}")
    }

    /// Signs a file; the signature lies beside it as `FILE.sig`.
    pub fn sign(&self, namespace: &str, file: &Path) {
        let signature = PathBuf::from(format!("{}.sig", file.display()));
        // ssh-keygen asks before it overwrites one.
        let _ = fs::remove_file(&signature);
        run(Command::new("ssh-keygen")
            .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
            .arg(&self.path)
            .arg(file));
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("ssh-keygen (package openssh-client)");
    assert!(output.status.success(), "ssh-keygen: {}", String::from_utf8_lossy(&output.stderr));
}
