#![forbid(unsafe_code)]
//! The list of tools: one for each action of the catalogue, and the daemon's own.

use super::envelope::Members;
use super::errors::RpcError;
use super::own::Own;
use super::{arguments, schema, text};
use crate::http::auth::Principal;
use crate::policy::Snapshot;
use gloveport_contract::catalog::{Action, Builtin, Catalog, ResultShape, Risk, is_name};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Tools of one page. Clients that never ask for a second page are known; few hosts declare more.
const PAGE: usize = 200;

/// A tool, encoded once for all who may see it.
struct Tool {
    name: String,
    risk: Risk,
    takes_key: bool,
    /// Where it is one of the daemon's own.
    own: Option<Own>,
    encoded: Box<RawValue>,
}

/// All tools of one generation of the policy, sorted by name.
pub struct Listing {
    generation: u64,
    catalog: Option<Arc<Catalog>>,
    tools: Vec<Tool>,
}

/// The newest listing, made when it is first asked for.
#[derive(Clone, Default)]
pub struct ListingCache(Arc<Mutex<Option<Arc<Listing>>>>);

impl ListingCache {
    /// The listing of that snapshot.
    pub fn of(&self, snapshot: &Snapshot) -> Arc<Listing> {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some(listing) if listing.generation == snapshot.generation => Arc::clone(listing),
            _ => {
                let catalog = snapshot.catalog.as_ref().ok().cloned();
                let tools =
                    catalog.as_ref().map(|catalog| tools(catalog, &snapshot.unsupported)).unwrap_or_default();
                let listing = Arc::new(Listing { generation: snapshot.generation, catalog, tools });
                *newest = Some(Arc::clone(&listing));
                listing
            }
        }
    }
}

/// One page of the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<'a> {
    tools: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(flatten)]
    more: Members,
}

impl Listing {
    /// The tools that the caller may call, from behind the cursor on. `more` joins the page's members.
    ///
    /// # Errors
    /// A cursor that no page gave.
    pub fn page(
        &self,
        principal: &Principal,
        cursor: Option<&Value>,
        more: Members,
    ) -> Result<Page<'_>, RpcError> {
        let behind = match cursor {
            None | Some(Value::Null) => None,
            Some(cursor) => Some(read_cursor(cursor)?),
        };
        let permitted = |tool: &Tool| match (tool.own, &self.catalog) {
            (Some(own), Some(catalog)) => own.is_permitted(principal, catalog),
            _ => principal.permits(&tool.name, tool.risk).is_ok(),
        };
        let visible = |tool: &&Tool| {
            (tool.takes_key || !matches!(principal, Principal::Keyless { .. })) && permitted(tool)
        };
        let start = match &behind {
            Some(name) => self.tools.partition_point(|tool| tool.name.as_str() <= name.as_str()),
            None => 0,
        };
        let mut rest = self.tools.iter().skip(start).filter(visible).peekable();
        let page: Vec<&Tool> = rest.by_ref().take(PAGE).collect();
        let next_cursor = page.last().filter(|_| rest.peek().is_some()).map(|last| write_cursor(&last.name));
        Ok(Page { tools: page.into_iter().map(|tool| &*tool.encoded).collect(), next_cursor, more })
    }
}

/// A cursor is the last name of a page in hexadecimal: it stays good when the catalogue changes.
fn write_cursor(name: &str) -> String {
    name.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a cursor; the empty one is where the list begins.
fn read_cursor(cursor: &Value) -> Result<String, RpcError> {
    let invalid = || RpcError::params("cursor: not one that this server gave; ask for the list anew");
    let text = cursor.as_str().ok_or_else(invalid)?;
    let digits = text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = digits
        .map(|pair| match pair {
            [_, _] => std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()),
            _ => None,
        })
        .collect();
    let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    name.filter(|name| name.is_empty() || (is_name(name) && write_cursor(name) == text)).ok_or_else(invalid)
}

fn tools(catalog: &Catalog, unsupported: &BTreeMap<String, String>) -> Vec<Tool> {
    let mut tools: Vec<Tool> = catalog
        .actions
        .iter()
        .filter_map(|action| {
            let described = describe(action, unsupported.get(&action.name));
            Some(Tool {
                name: action.name.clone(),
                risk: action.risk,
                takes_key: arguments::takes_key(action),
                own: None,
                encoded: to_raw_value(&described).ok()?,
            })
        })
        .collect();
    for own in Own::ALL.into_iter().filter(|own| own.is_in(catalog)) {
        // The catalogue is sorted by name; an action of that name takes the place of the daemon's own.
        if let Err(place) = tools.binary_search_by(|tool| tool.name.as_str().cmp(own.name()))
            && let Ok(encoded) = to_raw_value(&own.describe())
        {
            let name = own.name().to_owned();
            tools.insert(place, Tool { name, risk: Risk::Read, takes_key: false, own: Some(own), encoded });
        }
    }
    tools
}

fn describe(action: &Action, unsupported: Option<&String>) -> Value {
    let title = action.title.clone().unwrap_or_else(|| title_of(&action.name));
    let mut meta = Members::from_iter([("gloveport/risk".to_owned(), json!(action.risk.as_str()))]);
    if let Some(reason) = unsupported {
        meta.insert("gloveport/unsupported".to_owned(), json!(reason));
    }
    let mut tool = json!({
        "name": action.name,
        "title": title,
        "description": description(action, unsupported),
        "inputSchema": schema::input(action),
        "annotations": {
            "title": title,
            "readOnlyHint": action.risk == Risk::Read,
            "destructiveHint": action.risk == Risk::Dangerous,
            "idempotentHint": action.risk == Risk::Read,
            "openWorldHint": action.builtin == Some(Builtin::HttpGet),
        },
        "_meta": meta,
    });
    // A client of UFO's kind turns an output schema with properties into a class; it needs a plain object.
    if action.result == ResultShape::Full
        && let Some(tool) = tool.as_object_mut()
    {
        tool.insert("outputSchema".to_owned(), schema::OUTPUT.clone());
    }
    tool
}

fn title_of(name: &str) -> String {
    let words = name.replace(['_', '-', '.'], " ");
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The action's own words, and what an agent must know to read the result.
fn description(action: &Action, unsupported: Option<&String>) -> String {
    let mut words = String::new();
    if let Some(reason) = unsupported {
        words.push_str(&format!("[unsupported on this host: {reason}] "));
    }
    words.push_str(action.description.trim());
    if action.result == ResultShape::Full {
        let time = text::time(action.longest_timeout());
        let output = action.max_output();
        words.push_str(&format!(
            "\n\nAt most {time} and {output} bytes of output; what is cut is marked. A non-zero exit code is \
             a normal result, an error is a refusal, a failure to start or a timeout."
        ));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::fixtures::{principal, snapshot};

    fn names(page: &Page<'_>) -> Vec<String> {
        let value = serde_json::to_value(page).unwrap();
        let tools = value["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_list_is_paged_in_the_order_of_names_without_gap_or_repetition() {
        let many: Vec<Value> = (0..450)
            .map(|n| json!({"name": format!("a{n:03}"), "description": "d", "risk": "read", "exec": ["/bin/true"]}))
            .collect();
        let listing = ListingCache::default().of(&snapshot(json!(many)));
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = listing.page(&principal("*"), cursor.as_ref(), Members::new()).unwrap();
            seen.extend(names(&page));
            match page.next_cursor {
                Some(next) => cursor = Some(json!(next)),
                None => break,
            }
        }
        assert_eq!(seen.len(), 451);
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_cursor_that_no_page_gave_is_refused() {
        let listing = ListingCache::default().of(&snapshot(json!([])));
        for cursor in [json!("zz"), json!("6"), json!("2f"), json!("6A"), json!(5), json!("x".repeat(1000))] {
            let error = listing.page(&principal("*"), Some(&cursor), Members::new()).err().unwrap();
            assert_eq!(error.code, -32602, "{cursor}");
        }
        assert!(listing.page(&principal("*"), Some(&json!("")), Members::new()).is_ok());
    }

    #[test]
    fn only_what_the_caller_may_call_is_listed() {
        let actions = json!([
            {"name": "disk", "description": "d", "risk": "read", "exec": ["/bin/true"]},
            {"name": "kill", "description": "d", "risk": "dangerous", "exec": ["/bin/true"]},
        ]);
        let listing = ListingCache::default().of(&snapshot(actions));
        let of = |allow| names(&listing.page(&principal(allow), None, Members::new()).unwrap());
        assert_eq!(of("*"), ["disk", "run_batch"]);
        assert_eq!(of("d*"), ["disk"]);
    }

    #[test]
    fn a_tool_tells_its_risk_and_what_this_host_lacks() {
        let mut snapshot = snapshot(json!([
            {"name": "disk_free", "description": "Space.", "risk": "read", "exec": ["/bin/true"]},
        ]));
        snapshot.unsupported.insert("disk_free".to_owned(), "/bin/true does not exist".to_owned());
        let listing = ListingCache::default().of(&snapshot);
        let page =
            serde_json::to_value(listing.page(&principal("*"), None, Members::new()).unwrap()).unwrap();
        let tool = &page["tools"][0];
        assert_eq!(tool["title"], "Disk free");
        assert!(tool["description"].as_str().unwrap().starts_with("[unsupported on this host: /bin/true"));
        assert_eq!(tool["_meta"]["gloveport/risk"], "read");
        assert_eq!(
            tool["annotations"],
            json!({"title": "Disk free", "readOnlyHint": true, "destructiveHint": false,
                "idempotentHint": true, "openWorldHint": false})
        );
    }
}
