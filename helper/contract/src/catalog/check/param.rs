#![forbid(unsafe_code)]
//! Which keys a type of parameter takes, and whether its bounds make sense.

use super::{Problem, check_absolute, check_pattern, problem};
use crate::catalog::{Param, ParamType};
use crate::{limits, plan};

/// Checks one parameter, or the items of a list.
pub(super) fn check(at: &str, name: &str, param: &Param) -> Result<(), Problem> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.is_empty() || name.len() > limits::NAME || !name.bytes().all(word) {
        return problem(at, "a parameter's name is 1 to 64 letters, digits and _");
    }
    let kind = param.kind;
    let takes = |key: &str, given: bool, kinds: &[ParamType]| {
        if given && !kinds.contains(&kind) {
            problem(format!("{at}.{key}"), format!("a parameter of type {} has no `{key}`", kind.as_str()))
        } else {
            Ok(())
        }
    };
    use ParamType::{Boolean, Content, Enum, Integer, List, Path, String};
    takes("pattern", param.pattern.is_some(), &[String])?;
    takes("min", param.min.is_some(), &[Integer])?;
    takes("max", param.max.is_some(), &[Integer])?;
    takes("min_length", param.min_length.is_some(), &[String, Content])?;
    takes("max_length", param.max_length.is_some(), &[String, Path, Content])?;
    takes("values", !param.values.is_empty(), &[Enum])?;
    takes("roots", !param.roots.is_empty(), &[Path])?;
    takes("must_exist", param.must_exist, &[Path])?;
    takes("allow_dash", param.allow_dash, &[String, Integer])?;
    takes("secret", param.secret, &[String, Content])?;
    takes("items", param.items.is_some(), &[List])?;
    takes("min_items", param.min_items.is_some(), &[List])?;
    takes("max_items", param.max_items.is_some(), &[List])?;
    takes("default", param.default.is_some(), &[String, Integer, Boolean, Enum, Path, List])?;
    let ordered = |low: Option<u64>, high: Option<u64>, key: &str| match (low, high) {
        (Some(low), Some(high)) if low > high => {
            problem(format!("{at}.{key}"), "the lower end is above the upper")
        }
        _ => Ok(()),
    };
    ordered(param.min_length, param.max_length, "min_length")?;
    ordered(param.min_items, param.max_items, "min_items")?;
    if let (Some(min), Some(max)) = (param.min, param.max)
        && min > max
    {
        return problem(format!("{at}.min"), "the lower end is above the upper");
    }
    if let Some(pattern) = &param.pattern {
        check_pattern(&format!("{at}.pattern"), pattern)?;
    }
    check_absolute(&format!("{at}.roots"), &param.roots)?;
    match kind {
        Enum if param.values.is_empty() => problem(format!("{at}.values"), "an enum names its values"),
        Path if param.roots.is_empty() => problem(format!("{at}.roots"), "a path names its roots"),
        List => match &param.items {
            None => problem(format!("{at}.items"), "a list names the type of its items"),
            Some(item) if matches!(item.kind, List | Content) => {
                problem(format!("{at}.items.type"), "a list is of one scalar type")
            }
            Some(item) if item.optional || item.default.is_some() => {
                problem(format!("{at}.items"), "an item is neither optional nor has it a default")
            }
            Some(item) => check(&format!("{at}.items"), name, item),
        },
        _ => Ok(()),
    }?;
    if param.optional && param.default.is_some() {
        return problem(format!("{at}.optional"), "a parameter with a default is always given");
    }
    match &param.default {
        Some(default) => plan::check_default(name, param, default)
            .map_err(|error| (format!("{at}.default"), error.to_string())),
        None => Ok(()),
    }
}
