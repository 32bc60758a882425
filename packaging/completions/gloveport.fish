# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_gloveport_global_optspecs
    string join \n state= h/help V/version
end

function __fish_gloveport_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_gloveport_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_gloveport_using_subcommand
    set -l cmd (__fish_gloveport_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c gloveport -n "__fish_gloveport_needs_command" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_needs_command" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_needs_command" -s V -l version -d 'Print version'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "up" -d 'Try gloveport on this host, in the foreground, until Ctrl-C'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "init" -d 'Prepare this host: a signing key of its own, and the ready catalogues in force, with what stands in catalog.d'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "call" -d 'One tool call through the daemon'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "tools" -d 'The tools that the caller may use: parameters, risk, and whether this host supports them'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "catalog" -d 'Write, review and sign catalogues'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "stdio" -d 'The protocol on stdin and stdout, for a client that starts a program'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "client-config" -d 'Settings to paste into an MCP client'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "doctor" -d 'What is wrong on this host, why, and the way out'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "status" -d 'What is running and what is in force; ends with 1 where something is not, or cannot be told'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "pending" -d 'The calls that wait for approval'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "approve" -d 'Let a call that waits run, once and exactly as shown'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "deny" -d 'Refuse a call that waits'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "audit" -d 'What happened on this host'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "token" -d 'Who may call what'
complete -c gloveport -n "__fish_gloveport_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gloveport -n "__fish_gloveport_using_subcommand up" -l listen -d 'Where the daemon listens; port 0: any free one; may be repeated [default: 127.0.0.1:8010 and [::1]:8010]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand up" -l catalog -d 'A directory of YAML files in place of the ready catalogues; may be repeated' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand up" -l daemon-user -d 'Whom the daemon runs as' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand up" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand up" -l json -d 'When ready, print one line of JSON: endpoint, token, socket, state'
complete -c gloveport -n "__fish_gloveport_using_subcommand up" -l same-user -d 'Run everything as the caller: no root, and no boundary between daemon, helper and programs'
complete -c gloveport -n "__fish_gloveport_using_subcommand up" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand init" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand init" -s y -l yes -d 'Sign without asking'
complete -c gloveport -n "__fish_gloveport_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand call" -l url -d 'The daemon\'s URL; without one, this host\'s daemon is asked over its local socket' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand call" -l token -d 'A token for it; the variable is better, for other users can see a command\'s arguments' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand call" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand call" -l json -d 'Print the structured result as one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand call" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand tools" -l url -d 'The daemon\'s URL; without one, this host\'s daemon is asked over its local socket' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand tools" -l token -d 'A token for it; the variable is better, for other users can see a command\'s arguments' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand tools" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand tools" -l json -d 'Print the tools as the protocol lists them, as one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand tools" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "build" -d 'Check the YAML sources and write catalog.json'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "sign" -d 'Sign a catalogue with ssh-keygen'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "verify" -d 'Verify a catalogue\'s signature and contents, as the helper does'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "show" -d 'Show a catalogue, or one action of the one in force, for a reader'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "lint" -d 'Say what is risky in the YAML sources'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "diff" -d 'Say in words what a change permits that was not permitted before'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "schema" -d 'Print the JSON Schema of the sources, for editors'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "keygen" -d 'Make a signing key, and print the line that trusts it'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and not __fish_seen_subcommand_from build sign verify show lint diff schema keygen help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from build" -s o -l output -d 'Write catalog.json to this directory instead' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from build" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from build" -l json -d 'Print the result or the mistakes as one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from build" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from sign" -l key -d 'The signing key; a public key signs through ssh-agent [default: host_key]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from sign" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from sign" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from verify" -l signers -d 'Keys that may sign [default: trusted_signers of the host]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from verify" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from show" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from show" -l json -d 'Print it as JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from lint" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from lint" -l strict -d 'Fail on warnings, not only on mistakes'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from lint" -l json -d 'Print the findings as one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from lint" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from diff" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from diff" -l json -d 'Print the changes as one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from schema" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from schema" -l reference -d 'Print the reference page instead, as Markdown'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from keygen" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from keygen" -l sk -d 'A key in a hardware token (ed25519-sk)'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from keygen" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "build" -d 'Check the YAML sources and write catalog.json'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "sign" -d 'Sign a catalogue with ssh-keygen'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Verify a catalogue\'s signature and contents, as the helper does'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a catalogue, or one action of the one in force, for a reader'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "lint" -d 'Say what is risky in the YAML sources'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "diff" -d 'Say in words what a change permits that was not permitted before'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "schema" -d 'Print the JSON Schema of the sources, for editors'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "keygen" -d 'Make a signing key, and print the line that trusts it'
complete -c gloveport -n "__fish_gloveport_using_subcommand catalog; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -l url -d 'The daemon\'s URL; without one, this host\'s daemon is asked over its local socket' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -l token -d 'A token for it; the variable is better, for other users can see a command\'s arguments' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -l host -d 'A host to reach over ssh: web1, ops@db1:2222; may be repeated' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -l ssh-config -d 'A configuration for ssh in place of the user\'s' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -l idle -d 'Close a host\'s connection when nothing was asked over it for so many seconds' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -l connect-timeout -d 'How long connecting to a host may take, in seconds' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -l deadline -d 'How long one call to a host may take, connecting included, in seconds' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand stdio" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand client-config" -l url -d 'The daemon\'s URL [default: the one of this host]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand client-config" -l token -d 'The token to put into the settings' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand client-config" -l host -d 'Let it start `gloveport stdio` with this host, reached over ssh: web1, ops@db1:2222; may be repeated' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand client-config" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand client-config" -l stdio -d 'Let the client start `gloveport stdio` instead of speaking HTTP'
complete -c gloveport -n "__fish_gloveport_using_subcommand client-config" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand doctor" -l client -d 'Examine, step by step, what a client would see at this URL instead (GLOVEPORT_TOKEN is presented)' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand doctor" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand doctor" -l json -d 'Print one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand status" -l end -d 'End a run, by the id that is shown: root any, a local user their own' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand status" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand status" -l json -d 'Print one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand status" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand pending" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand pending" -l json -d 'Print one line of JSON: a list, with the whole of every argument'
complete -c gloveport -n "__fish_gloveport_using_subcommand pending" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand approve" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand approve" -l watch -d 'Show calls as they come, and ask about each'
complete -c gloveport -n "__fish_gloveport_using_subcommand approve" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand deny" -l reason -d 'Why; the client is told' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand deny" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand deny" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and not __fish_seen_subcommand_from tail verify help" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and not __fish_seen_subcommand_from tail verify help" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and not __fish_seen_subcommand_from tail verify help" -f -a "tail" -d 'The newest records'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and not __fish_seen_subcommand_from tail verify help" -f -a "verify" -d 'Whether no record was changed, removed or moved'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and not __fish_seen_subcommand_from tail verify help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from tail" -s n -d 'How many' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from tail" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from tail" -s f -l follow -d 'Go on with what is recorded from now on'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from tail" -l json -d 'Print the records as they are, one line of JSON each'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from tail" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from verify" -l receipt -d 'A receipt that a client kept (`audit` in a result): finds a chain that was written anew' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from verify" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from verify" -l json -d 'Print one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "tail" -d 'The newest records'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Whether no record was changed, removed or moved'
complete -c gloveport -n "__fish_gloveport_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and not __fish_seen_subcommand_from add list revoke allow-user deny-user help" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and not __fish_seen_subcommand_from add list revoke allow-user deny-user help" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and not __fish_seen_subcommand_from add list revoke allow-user deny-user help" -f -a "add" -d 'Make a token; its secret is shown once and stored nowhere'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and not __fish_seen_subcommand_from add list revoke allow-user deny-user help" -f -a "list" -d 'The tokens and local users, with what they may call'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and not __fish_seen_subcommand_from add list revoke allow-user deny-user help" -f -a "revoke" -d 'End a token at once, by its name or id'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and not __fish_seen_subcommand_from add list revoke allow-user deny-user help" -f -a "allow-user" -d 'Let a user of this host call over the local socket, without a token'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and not __fish_seen_subcommand_from add list revoke allow-user deny-user help" -f -a "deny-user" -d 'Take that back'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and not __fish_seen_subcommand_from add list revoke allow-user deny-user help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l name -d 'A name for people: 1 to 64 of A-Z a-z 0-9 . _ -' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l via -d 'How a client may present it: header (the usual way), path (a URL that holds it), argument (`api_key`)' -r -f -a "header\t'`Authorization: Bearer …`'
argument\t'The tool argument `api_key`'
path\t'`/mcp/t/TOKEN`'"
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l allow -d 'Actions that may be called; `*` and `?` are wildcards; may be repeated [default: *]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l max-risk -d 'The highest risk' -r -f -a "read\t'Changes nothing'
write\t'Changes something that can be put right'
dangerous\t'May cost data or the host'"
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l expires -d 'End of its life from now on, such as 12h or 30d [default: never]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l hours -d 'Hours of the day, UTC, such as 08:00-18:00 [default: all]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l per-minute -d 'Calls per minute [default: no limit]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l at-once -d 'Runs at once [default: no limit]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -l json -d 'Print one line of JSON: name, id, token and, with `path`, url'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from list" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from list" -l json -d 'Print one line of JSON'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from revoke" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from revoke" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from allow-user" -l allow -d 'Actions that may be called; `*` and `?` are wildcards; may be repeated [default: *]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from allow-user" -l max-risk -d 'The highest risk' -r -f -a "read\t'Changes nothing'
write\t'Changes something that can be put right'
dangerous\t'May cost data or the host'"
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from allow-user" -l expires -d 'End of its life from now on, such as 12h or 30d [default: never]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from allow-user" -l hours -d 'Hours of the day, UTC, such as 08:00-18:00 [default: all]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from allow-user" -l per-minute -d 'Calls per minute [default: no limit]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from allow-user" -l at-once -d 'Runs at once [default: no limit]' -r
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from allow-user" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from allow-user" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from deny-user" -l state -d 'Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport [env: GLOVEPORT_STATE]' -r -F
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from deny-user" -s h -l help -d 'Print help'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "add" -d 'Make a token; its secret is shown once and stored nowhere'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "list" -d 'The tokens and local users, with what they may call'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "revoke" -d 'End a token at once, by its name or id'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "allow-user" -d 'Let a user of this host call over the local socket, without a token'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "deny-user" -d 'Take that back'
complete -c gloveport -n "__fish_gloveport_using_subcommand token; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "up" -d 'Try gloveport on this host, in the foreground, until Ctrl-C'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "init" -d 'Prepare this host: a signing key of its own, and the ready catalogues in force, with what stands in catalog.d'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "call" -d 'One tool call through the daemon'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "tools" -d 'The tools that the caller may use: parameters, risk, and whether this host supports them'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "catalog" -d 'Write, review and sign catalogues'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "stdio" -d 'The protocol on stdin and stdout, for a client that starts a program'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "client-config" -d 'Settings to paste into an MCP client'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "doctor" -d 'What is wrong on this host, why, and the way out'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "status" -d 'What is running and what is in force; ends with 1 where something is not, or cannot be told'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "pending" -d 'The calls that wait for approval'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "approve" -d 'Let a call that waits run, once and exactly as shown'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "deny" -d 'Refuse a call that waits'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "audit" -d 'What happened on this host'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "token" -d 'Who may call what'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and not __fish_seen_subcommand_from up init call tools catalog stdio client-config doctor status pending approve deny audit token help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from catalog" -f -a "build" -d 'Check the YAML sources and write catalog.json'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from catalog" -f -a "sign" -d 'Sign a catalogue with ssh-keygen'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from catalog" -f -a "verify" -d 'Verify a catalogue\'s signature and contents, as the helper does'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from catalog" -f -a "show" -d 'Show a catalogue, or one action of the one in force, for a reader'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from catalog" -f -a "lint" -d 'Say what is risky in the YAML sources'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from catalog" -f -a "diff" -d 'Say in words what a change permits that was not permitted before'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from catalog" -f -a "schema" -d 'Print the JSON Schema of the sources, for editors'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from catalog" -f -a "keygen" -d 'Make a signing key, and print the line that trusts it'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "tail" -d 'The newest records'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "verify" -d 'Whether no record was changed, removed or moved'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "add" -d 'Make a token; its secret is shown once and stored nowhere'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "list" -d 'The tokens and local users, with what they may call'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "revoke" -d 'End a token at once, by its name or id'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "allow-user" -d 'Let a user of this host call over the local socket, without a token'
complete -c gloveport -n "__fish_gloveport_using_subcommand help; and __fish_seen_subcommand_from token" -f -a "deny-user" -d 'Take that back'
