#![forbid(unsafe_code)]
//! Which network addresses `http_get` may connect to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One rule of `addresses`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// Reachable on the public internet: everything that is in no special-purpose block.
    Public,
    /// RFC 1918 and `fc00::/7`, without the metadata address of a cloud in it.
    Private,
    /// `127.0.0.0/8` and `::1`.
    Loopback,
    /// `169.254.0.0/16` and `fe80::/10`: where most clouds have their metadata service.
    LinkLocal,
    /// A block in CIDR notation: its address and the length of its prefix in bits.
    Block(IpAddr, u8),
}

/// The metadata service of one large cloud in IPv6, inside `fc00::/7`.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Blocks that are neither public nor of a class of their own (IANA's special-purpose registry). What
/// embeds an IPv4 address is looked at as that address before this table is asked.
const SPECIAL: [(&str, u8); 17] = [
    ("0.0.0.0", 8),
    ("100.64.0.0", 10),
    ("192.0.0.0", 24),
    ("192.0.2.0", 24),
    ("192.88.99.0", 24),
    ("198.18.0.0", 15),
    ("198.51.100.0", 24),
    ("203.0.113.0", 24),
    ("224.0.0.0", 4),
    ("240.0.0.0", 4),
    ("::", 96),
    ("64:ff9b:1::", 48),
    ("100::", 64),
    ("2001::", 23),
    ("2001:db8::", 32),
    ("3fff::", 20),
    ("ff00::", 8),
];

impl AddressClass {
    /// Reads a rule: `public`, `private`, `loopback`, `link_local`, or a block such as `10.1.0.0/16`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "public" => return Some(Self::Public),
            "private" => return Some(Self::Private),
            "loopback" => return Some(Self::Loopback),
            "link_local" => return Some(Self::LinkLocal),
            _ => {}
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address.parse::<IpAddr>().ok()?, Some(bits.parse::<u8>().ok()?)),
            None => (text.parse::<IpAddr>().ok()?, None),
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Self::Block(address, bits))
    }

    /// Whether the rule holds for an address. An IPv4 address in IPv6 clothes is judged as what it is.
    pub fn holds(self, address: IpAddr) -> bool {
        let address = plain(address);
        match self {
            Self::Loopback => address.is_loopback(),
            Self::LinkLocal => is_link_local(address),
            Self::Private => is_private(address),
            Self::Block(block, bits) => is_in(address, block, bits),
            Self::Public => {
                let special = |(block, bits): &(&str, u8)| {
                    block.parse().is_ok_and(|block| is_in(address, block, *bits))
                };
                !(address.is_loopback()
                    || is_link_local(address)
                    || is_private(address)
                    || address == IpAddr::V6(METADATA_V6)
                    || SPECIAL.iter().any(special))
            }
        }
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local() && address != METADATA_V6,
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped (`::ffff:…`), translated (`64:ff9b::…`) or
/// tunnelled (`2002:…`).
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let v4 = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => v4(g, h),
        (0x2002, ..) => v4(b, c),
        _ => address,
    }
}

fn is_in(address: IpAddr, block: IpAddr, bits: u8) -> bool {
    let same = |a: u128, b: u128, width: u32| {
        let ignored = width.saturating_sub(u32::from(bits));
        a.checked_shr(ignored).unwrap_or(0) == b.checked_shr(ignored).unwrap_or(0)
    };
    match (address, block) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(rule: &str, address: &str) -> bool {
        AddressClass::parse(rule).unwrap().holds(address.parse().unwrap())
    }

    #[test]
    fn public_is_what_is_special_in_no_way() {
        for address in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"] {
            assert!(holds("public", address), "{address}");
        }
        for address in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fd00:ec2::254",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "2001::1",
        ] {
            assert!(!holds("public", address), "{address}");
        }
    }

    #[test]
    fn each_class_is_its_own() {
        assert!(holds("loopback", "127.9.9.9") && holds("loopback", "::1"));
        assert!(holds("loopback", "::ffff:127.0.0.1") && !holds("loopback", "10.0.0.1"));
        assert!(holds("link_local", "169.254.169.254") && !holds("private", "169.254.169.254"));
        assert!(holds("private", "fd12::1") && !holds("private", "fd00:ec2::254"));
        assert!(!holds("private", "127.0.0.1") && !holds("private", "100.100.100.200"));
    }

    #[test]
    fn a_block_is_compared_by_its_prefix() {
        assert!(holds("10.1.0.0/16", "10.1.255.255") && !holds("10.1.0.0/16", "10.2.0.0"));
        assert!(holds("192.0.2.7", "192.0.2.7") && !holds("192.0.2.7", "192.0.2.8"));
        assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "2606::1"));
        assert!(holds("fd00:ec2::254/128", "fd00:ec2::254"));
        for nonsense in ["", "Public", "10.0.0.0/33", "::/129", "10/8", "example.com", "10.0.0.0/"] {
            assert_eq!(AddressClass::parse(nonsense), None, "{nonsense}");
        }
    }
}
