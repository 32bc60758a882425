#![forbid(unsafe_code)]
//! Reading and writing of the keys that have two forms, by hand: an untagged enum would lose the place of
//! an error, and here every message carries one.

use super::{
    ArgvItem, CommandEntry, CommandRule, Directory, Literal, Network, NetworkClass, Operands, Timeout,
};
use crate::units::Millis;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

impl Serialize for ArgvItem {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(text) => s.serialize_str(text),
            Self::Group(items) => items.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for ArgvItem {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Item;
        impl<'de> Visitor<'de> for Item {
            type Value = ArgvItem;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a \"{parameter}\", or a list of those (an optional group)")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ArgvItem, E> {
                Ok(ArgvItem::One(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ArgvItem, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element::<String>()? {
                    items.push(item);
                }
                Ok(ArgvItem::Group(items))
            }
        }
        d.deserialize_any(Item)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeoutParam {
    param: String,
    default: Millis,
    max: Millis,
}

impl Serialize for Timeout {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(time) => time.serialize(s),
            Self::Param { param, default, max } => {
                TimeoutParam { param: param.clone(), default: *default, max: *max }.serialize(s)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Timeout;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as 20s, or {param, default, max}")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timeout, E> {
                Millis::parse(text)
                    .map(Timeout::Fixed)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Timeout, A::Error> {
                let form = TimeoutParam::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Timeout::Param { param: form.param, default: form.default, max: form.max })
            }
        }
        d.deserialize_any(Form)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DirectoryParam {
    param: String,
    roots: Vec<String>,
}

impl Serialize for Directory {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(path) => path.serialize(s),
            Self::Param { param, roots } => {
                DirectoryParam { param: param.clone(), roots: roots.clone() }.serialize(s)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Directory {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Directory;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an absolute path, or {param, roots}")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Directory, E> {
                Ok(Directory::Fixed(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Directory, A::Error> {
                let form = DirectoryParam::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Directory::Param { param: form.param, roots: form.roots })
            }
        }
        d.deserialize_any(Form)
    }
}

impl Serialize for Literal {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Boolean(value) => s.serialize_bool(*value),
            Self::Integer(value) => s.serialize_i64(*value),
            Self::Text(value) => s.serialize_str(value),
            Self::List(values) => values.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Literal;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, an integer, a boolean or a list of those")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Literal, E> {
                Ok(Literal::Boolean(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Literal, E> {
                Ok(Literal::Integer(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Literal, E> {
                i64::try_from(value)
                    .map(Literal::Integer)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Literal, E> {
                Ok(Literal::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Literal, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element::<Scalar>()? {
                    values.push(value.0);
                }
                Ok(Literal::List(values))
            }
        }
        d.deserialize_any(Form)
    }
}

/// A literal that is no list, so that reading one cannot recurse.
struct Scalar(Literal);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl Visitor<'_> for Form {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, an integer or a boolean")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(Literal::Boolean(value)))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar(Literal::Integer(value)))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
                i64::try_from(value)
                    .map(|value| Scalar(Literal::Integer(value)))
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar(Literal::Text(value.to_owned())))
            }
        }
        d.deserialize_any(Form)
    }
}

impl Serialize for Operands {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.min == self.max {
            s.serialize_u32(self.min)
        } else {
            s.collect_str(&format_args!("{}..{}", self.min, self.max))
        }
    }
}

impl<'de> Deserialize<'de> for Operands {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl Visitor<'_> for Form {
            type Value = Operands;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of operands, or a range such as 0..64 (both ends count)")
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Operands, E> {
                let count = u32::try_from(value)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))?;
                Ok(Operands { min: count, max: count })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Operands, E> {
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                let (min, max) = text.split_once("..").ok_or_else(wrong)?;
                let min = min.parse().map_err(|_| wrong())?;
                let max = max.parse().map_err(|_| wrong())?;
                if min > max { Err(wrong()) } else { Ok(Operands { min, max }) }
            }
        }
        d.deserialize_any(Form)
    }
}

impl Serialize for CommandEntry {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Name(name) => s.serialize_str(name),
            Self::Rule(rule) => rule.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for CommandEntry {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = CommandEntry;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command's rules ({name, exec, …}), or for redis_command a name")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<CommandEntry, E> {
                Ok(CommandEntry::Name(name.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CommandEntry, A::Error> {
                CommandRule::deserialize(MapAccessDeserializer::new(map))
                    .map(|rule| CommandEntry::Rule(Box::new(rule)))
            }
        }
        d.deserialize_any(Form)
    }
}

const CLASSES: &[&str] = &["netlink", "unix", "dns", "icmp", "connect", "bind"];

fn plain_class(name: &str) -> Option<NetworkClass> {
    match name {
        "netlink" => Some(NetworkClass::Netlink),
        "unix" => Some(NetworkClass::Unix),
        "dns" => Some(NetworkClass::Dns),
        "icmp" => Some(NetworkClass::Icmp),
        _ => None,
    }
}

impl Serialize for NetworkClass {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let (name, ports) = match self {
            Self::Netlink => return s.serialize_str("netlink"),
            Self::Unix => return s.serialize_str("unix"),
            Self::Dns => return s.serialize_str("dns"),
            Self::Icmp => return s.serialize_str("icmp"),
            Self::Connect(ports) => ("connect", ports),
            Self::Bind(ports) => ("bind", ports),
        };
        let mut map = s.serialize_map(Some(1))?;
        map.serialize_entry(name, ports)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for NetworkClass {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = NetworkClass;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("netlink, unix, dns, icmp, {connect: [ports]} or {bind: [ports]}")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<NetworkClass, E> {
                plain_class(name).ok_or_else(|| E::unknown_variant(name, CLASSES))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NetworkClass, A::Error> {
                let name: String = map.next_key()?.ok_or_else(|| de::Error::invalid_length(0, &self))?;
                let ports: Vec<u16> = match name.as_str() {
                    "connect" | "bind" => map.next_value()?,
                    other => return Err(de::Error::unknown_variant(other, CLASSES)),
                };
                if map.next_key::<String>()?.is_some() {
                    return Err(de::Error::custom("one class per list element"));
                }
                Ok(if name == "connect" { NetworkClass::Connect(ports) } else { NetworkClass::Bind(ports) })
            }
        }
        d.deserialize_any(Form)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => s.serialize_str("none"),
            Self::Namespace => s.serialize_str("namespace"),
            Self::Classes(classes) => {
                let mut seq = s.serialize_seq(Some(classes.len()))?;
                for class in classes {
                    seq.serialize_element(class)?;
                }
                seq.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Network;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("none, namespace, or a list of classes such as [dns, {connect: [443]}]")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Network, E> {
                match name {
                    "none" => Ok(Network::None),
                    "namespace" => Ok(Network::Namespace),
                    other => Err(E::unknown_variant(other, &["none", "namespace"])),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Network, A::Error> {
                let mut classes: Vec<NetworkClass> = Vec::new();
                while let Some(class) = seq.next_element()? {
                    classes.push(class);
                }
                Ok(if classes.is_empty() { Network::None } else { Network::Classes(classes) })
            }
        }
        d.deserialize_any(Form)
    }
}
