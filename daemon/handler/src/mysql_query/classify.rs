#![forbid(unsafe_code)]
//! Which statements are sent: exactly one SELECT, SHOW, DESC or EXPLAIN, of functions that are known, and
//! without anything that a server could read in another way than this parser.

use super::functions;
use crate::failure::{Failure, refuse};
use sqlparser::ast::{Query, SetExpr, Statement};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer, Word};
use std::thread;

/// Expressions within each other.
const RECURSION: usize = 64;
/// Parentheses within each other: the parser's time can grow exponentially with them.
const PARENTHESES: usize = 32;
/// Words, numbers and signs of one statement.
const TOKENS: usize = 10_000;
/// Stack of the parser, bytes; only what is used of it costs memory.
const STACK: usize = 256 << 20;

/// Words that make a SELECT do more than read, wherever they stand outside of quotes.
const WORDS: [(&str, &str); 8] = [
    ("INTO", "a SELECT must not write its result to a file or a variable"),
    ("OUTFILE", "files on the server are neither read nor written"),
    ("DUMPFILE", "files on the server are neither read nor written"),
    ("LOCK", "rows are not locked"),
    ("PROCEDURE", "procedures are not run"),
    ("ANALYZE", "EXPLAIN must not run the statement"),
    ("PREPARE", "statements are not prepared by name"),
    ("EXECUTE", "statements are not prepared by name"),
];
/// Pairs of words with that effect.
const PAIRS: [(&str, &str, &str); 4] = [
    ("FOR", "UPDATE", "rows are not locked"),
    ("FOR", "SHARE", "rows are not locked"),
    ("NEXT", "VALUE", "a sequence is not advanced"),
    ("FOR", "CONNECTION", "other sessions are not looked into"),
];

/// Checks a statement, and gives it without a `;` at its end.
///
/// # Errors
/// It is something else, or nothing that is understood.
pub fn check(sql: &str) -> Result<&str, Failure> {
    let sql = sql.trim();
    let sql = sql.strip_suffix(';').unwrap_or(sql).trim_end();
    super::check_length("sql", sql.len())?;
    check_lexically(sql)?;
    let tokens = Tokenizer::new(&MySqlDialect {}, sql)
        .tokenize()
        .map_err(|error| Failure::refused(format!("sql: not understood: {error}")))?;
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let first = tokens.first().and_then(bare_word).unwrap_or_default().to_ascii_uppercase();
    check_tokens(&tokens)?;
    match first.as_str() {
        // SHOW has many forms, and none of them changes anything.
        "SHOW" => Ok(()),
        "SELECT" | "WITH" | "DESC" | "DESCRIBE" | "EXPLAIN" => parsed(sql),
        _ => refuse("sql: only one SELECT, SHOW, DESC or EXPLAIN is run"),
    }?;
    Ok(sql)
}

/// Refuses what servers of different kinds and versions read differently: comments, of which some hold
/// statements, and a second statement. Quotes are read as under the session's sql_mode.
fn check_lexically(sql: &str) -> Result<(), Failure> {
    let mut quote = None;
    let mut bytes = sql.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte == 0 {
            return refuse("sql: holds NUL");
        }
        if let Some(open) = quote {
            if byte == b'\\' && open != b'`' {
                bytes.next();
            } else if byte == open && bytes.next_if_eq(&open).is_none() {
                quote = None;
            }
            continue;
        }
        match (byte, bytes.peek()) {
            (b'\'' | b'"' | b'`', _) => quote = Some(byte),
            (b'#', _) | (b'/', Some(b'*')) | (b'-', Some(b'-')) => {
                return refuse("sql: comments (`#`, `--`, `/*`) can hide statements: leave them out");
            }
            (b';', _) => return refuse("sql: only one statement is run"),
            _ => {}
        }
    }
    match quote {
        Some(_) => refuse("sql: a quote is not closed"),
        None => Ok(()),
    }
}

/// The text of a word that stands without quotes.
fn bare_word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value),
        _ => None,
    }
}

fn check_tokens(tokens: &[Token]) -> Result<(), Failure> {
    check_size(tokens)?;
    let is = |token: Option<&Token>, word: &str| {
        token.and_then(bare_word).is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    for (index, token) in tokens.iter().enumerate() {
        let (previous, next) = (index.checked_sub(1).and_then(|at| tokens.get(at)), tokens.get(index + 1));
        // `t.lock` is a column; a column alone has its own quotes where its name is reserved.
        let qualified = previous == Some(&Token::Period);
        if !qualified && let Some((word, reason)) = WORDS.iter().find(|(word, _)| is(Some(token), word)) {
            return refuse(format!("sql: {word}: {reason}"));
        }
        for (first, second, reason) in PAIRS {
            if is(Some(token), first) && is(next, second) {
                return refuse(format!("sql: {first} {second}: {reason}"));
            }
        }
        if *token == Token::Assignment {
            return refuse("sql: variables are not assigned");
        }
        if let (Token::Word(word), Some(Token::LParen)) = (token, next) {
            let known = word.quote_style.is_none() && !qualified && functions::is_known(&word.value);
            // `AS name (columns)` and `WITH name (columns)` name columns; they call nothing.
            let names_columns = is(previous, "AS") || is(previous, "WITH") || is(previous, "RECURSIVE");
            if !known && !names_columns {
                return refuse(format!(
                    "sql: `{}(`: not one of the functions that are known to only read; a stored or loaded function could do anything",
                    word.value
                ));
            }
        }
    }
    Ok(())
}

fn check_size(tokens: &[Token]) -> Result<(), Failure> {
    if tokens.len() > TOKENS {
        return refuse(format!("sql: {} words and signs; at most {TOKENS}", tokens.len()));
    }
    let mut depth = 0_usize;
    for token in tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > PARENTHESES {
            return refuse(format!("sql: more than {PARENTHESES} parentheses within each other"));
        }
    }
    Ok(())
}

/// Parses on a stack of its own size: not all recursion of the parser is counted by its limit, and an
/// operator in front of an operator, or a chain of them, nests as deep as the statement is long.
fn parsed(sql: &str) -> Result<(), Failure> {
    let failed = || Failure::refused("sql: not understood");
    thread::scope(|scope| {
        let parser = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || parsed_here(sql));
        parser.map_err(|_| failed())?.join().unwrap_or_else(|_| Err(failed()))
    })
}

fn parsed_here(sql: &str) -> Result<(), Failure> {
    let statements = Parser::new(&MySqlDialect {})
        .with_recursion_limit(RECURSION)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| Failure::refused(format!("sql: not understood: {error}")))?;
    match statements.as_slice() {
        [statement] if reads(statement) => Ok(()),
        [_] => refuse("sql: only one SELECT, SHOW, DESC or EXPLAIN is run"),
        _ => refuse("sql: only one statement is run"),
    }
}

fn reads(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => query_reads(query),
        Statement::ExplainTable { .. } => true,
        Statement::Explain { analyze: false, statement, .. } => {
            matches!(statement.as_ref(), Statement::Query(query) if query_reads(query))
        }
        _ => false,
    }
}

fn query_reads(query: &Query) -> bool {
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    query.locks.is_empty()
        && with.into_iter().all(|table| query_reads(&table.query))
        && body_reads(&query.body)
}

fn body_reads(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_none(),
        SetExpr::Query(query) => query_reads(query),
        SetExpr::SetOperation { left, right, .. } => body_reads(left) && body_reads(right),
        SetExpr::Values(_) | SetExpr::Table(_) => true,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_statements_pass() {
        for sql in [
            "SELECT 1",
            "select 1;",
            "  SELECT * FROM t WHERE a = ? AND b IN (1, 2) ORDER BY c LIMIT 10  ",
            "SELECT `order`, `lock`, t.lock FROM `into` t",
            "SELECT 'INTO OUTFILE ; # -- /* ' FROM t",
            "SELECT 'it''s', \"a\\\"b;\", '\\'; x'",
            "SELECT COUNT(*), SUM(a), MAX(b) FROM t GROUP BY c HAVING COUNT(*) > 1",
            "SELECT a FROM t UNION ALL (SELECT b FROM u)",
            "WITH x (a, b) AS (SELECT 1, 2) SELECT a FROM x",
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
            "SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) FROM t",
            "SELECT CAST(a AS DECIMAL(10,2)), CONVERT(b USING utf8mb4), JSON_EXTRACT(c, '$.x') FROM t",
            "SELECT DATE_ADD(NOW(), INTERVAL 1 DAY), 5 - 1, 5-1",
            "SELECT * FROM a JOIN b USING (id) LEFT JOIN c ON (a.x = c.x) WHERE EXISTS (SELECT 1 FROM d)",
            "SHOW TABLES",
            "SHOW FULL COLUMNS FROM t LIKE 'a%'",
            "SHOW GLOBAL STATUS WHERE variable_name IN ('Uptime')",
            "SHOW CREATE TABLE t",
            "SHOW ENGINE INNODB STATUS",
            "DESC t",
            "DESCRIBE t",
            "EXPLAIN SELECT * FROM t",
            "EXPLAIN FORMAT=JSON SELECT * FROM t",
        ] {
            if let Err(failure) = check(sql) {
                panic!("{sql}: {}", failure.message());
            }
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for sql in [
            "",
            ";",
            "INSERT INTO t VALUES (1)",
            "UPDATE t SET a = 1",
            "DELETE FROM t",
            "REPLACE t VALUES (1)",
            "DROP TABLE t",
            "CREATE TABLE t (a INT)",
            "GRANT ALL ON *.* TO x",
            "SET GLOBAL x = 1",
            "SET @a = 1",
            "CALL p()",
            "DO 1",
            "HANDLER t OPEN",
            "PREPARE s FROM 'SELECT 1'",
            "EXECUTE s",
            "EXECUTE IMMEDIATE 'SELECT 1'",
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "LOCK TABLES t READ",
            "FLUSH TABLES",
            "KILL 1",
            "USE x",
            "ANALYZE TABLE t",
            "ANALYZE SELECT 1",
            "EXPLAIN ANALYZE SELECT 1",
            "EXPLAIN UPDATE t SET a = 1",
            "EXPLAIN FOR CONNECTION 5",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "SELECT 1; SELECT 2",
            "SELECT 1; DROP TABLE t",
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "SELECT 1 INTO DUMPFILE '/tmp/x'",
            "SELECT 1 INTO/**/OUTFILE '/tmp/x'",
            "SELECT 1 INTO @a",
            "SELECT @a := 1",
            "SELECT LOAD_FILE('/etc/passwd')",
            "SELECT load_file ('/etc/passwd')",
            "SELECT LOAD_FILE\n('/etc/passwd')",
            "SELECT /*!50000 1 INTO OUTFILE '/tmp/x' */",
            "SELECT /*M! 1 */",
            "SELECT /*+ SET_VAR(sql_mode='ANSI_QUOTES') */ 1",
            "SELECT 1 -- x",
            "SELECT 1 # x",
            "SELECT 1--\t1",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM (SELECT * FROM t FOR UPDATE) x",
            "SELECT * FROM t LOCK IN SHARE MODE",
            "SELECT * FROM t FOR SHARE",
            "SELECT * FROM t PROCEDURE ANALYSE()",
            "SELECT SLEEP(10)",
            "SELECT BENCHMARK(1000000, MD5('x'))",
            "SELECT GET_LOCK('x', 10)",
            "SELECT NEXT VALUE FOR s",
            "SELECT NEXTVAL(s)",
            "SELECT SETVAL(s, 1)",
            "SELECT LAST_INSERT_ID(5)",
            "SELECT sys_exec('id')",
            "SELECT my_function(1)",
            "SELECT `my_function`(1)",
            "SELECT `count`(1)",
            "SELECT db.count(1)",
            "SELECT MASTER_POS_WAIT('x', 1)",
            "WITH x AS (DELETE FROM t) SELECT 1",
            "SHOW TABLES; DROP TABLE t",
            "SHOW TABLES WHERE SLEEP(1)",
            "TABLE t INTO OUTFILE '/tmp/x'",
            "SELECT 'open",
            "SELECT 1\0",
        ] {
            assert!(check(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        for (open, close, count) in [("(", ")", 20_000), ("(", ")", 33), ("NOT ", "", 5000), ("- ", "", 5000)]
        {
            let sql = format!("SELECT {}1{}", open.repeat(count), close.repeat(count));
            assert!(check(&sql).is_err(), "{open}");
        }
        for (part, count) in [("+1", 20_000), (" UNION SELECT 1", 5000), ("CASE WHEN ", 1000)] {
            assert!(check(&format!("SELECT 1{}", part.repeat(count))).is_err(), "{part}");
        }
        assert!(check(&format!("SELECT 1{}", "+1".repeat(4000))).is_ok());
        assert!(check(&format!("SELECT 1{}", " UNION SELECT 1".repeat(3000))).is_ok());
        assert!(check(&format!("SELECT {}1{}", "(".repeat(20), ")".repeat(20))).is_ok());
    }
}
