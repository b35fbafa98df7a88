//! Tests of the RESP door without a connection.

use super::*;
use crate::config::access::AccessConfig;
use crate::fuzzing::{Outcome, drive};
use proptest::prelude::*;

/// Passes a whole stream to the door, split as `cuts` say.
fn over(stream: &[u8], cuts: &[(usize, usize)]) -> Outcome {
    drive(Resp::new(None, Arc::default()), stream, cuts, 100)
}

fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

#[test]
fn each_value_is_a_record_and_each_answer_names_it() {
    let stream = [
        request(&[b"XADD", b"key", b"*", b"field", b"one"]),
        request(&[b"xadd", b"key", b"MAXLEN", b"~", b"1000", b"*", b"f", b"two\r\n\0"]),
        request(&[b"RPUSH", b"list", b"three", b"four"]),
        b"LPUSH list five\r\n".to_vec(),
        b"XTRIM key MAXLEN ~ 2\r\nMULTI\r\nXADD key * f six\r\nXTRIM key MINID 3\r\nEXEC\r\n"
            .to_vec(),
    ]
    .concat();
    let outcome = over(&stream, &[]);
    assert_eq!(outcome.records, [&b"one"[..], b"two\r\n\0", b"three", b"four", b"five", b"six"]);
    let answers = "$3\r\n0-1\r\n$3\r\n1-1\r\n:4\r\n:5\r\n:0\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n\
                   *2\r\n$3\r\n5-1\r\n:0\r\n";
    assert_eq!(String::from_utf8_lossy(&outcome.answers), answers);
    assert_eq!(outcome.refused, None);
}

#[test]
fn a_stranger_is_refused_at_a_request_of_many_bytes_also_where_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    std::fs::write(&path, "secret\n").unwrap();
    let config = AccessConfig { token_file: Some(path), is_insecure: false };
    let access = Arc::new(Access::load(&config).unwrap());
    let drive = |stream: &[u8]| drive(Resp::new(None, access.clone()), stream, &[], 100_000);
    let long = request(&[b"ECHO", &[b'x'; GREETING_BYTES_MAX]]);
    assert_eq!(drive(&long).refused, Some(Reason::TooLong));
    let auth = request(&[b"AUTH", b"secret"]);
    assert_eq!(drive(&[auth, long].concat()).refused, None);
}

#[test]
fn a_command_without_a_record_is_an_error_and_the_connection_continues() {
    let long = [b'x'; 101];
    let stream = [
        request(&[b"XADD", b"key", b"5-1", b"field", b"value"]),
        request(&[b"XADD", b"key", b"*", b"a", b"1", b"b"]),
        request(&[b"XADD", b"key", b"*", b"field", &long]),
        request(&[b"DEL", b"key"]),
        request(&[b"XADD", b"key"]),
        request(&[b"XADD", b"key", b"*", b"field", b"kept"]),
    ]
    .concat();
    let outcome = over(&stream, &[]);
    assert_eq!(outcome.records, [b"kept"]);
    let answers = String::from_utf8(outcome.answers).unwrap();
    let lines: Vec<_> = answers.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("-ERR")).count(), 5, "{answers}");
    assert_eq!(lines[5..], ["$3", "0-1"]);
}

#[test]
fn the_handshakes_of_clients_are_answered() {
    let stream = b"PING\r\nHELLO 3\r\nCLIENT SETINFO LIB-NAME redis-py\r\nHELLO 4\r\nSELECT 0\r\n\
        COMMAND DOCS\r\nCONFIG GET save\r\nECHO hi\r\nQUIT\r\nPING\r\n";
    let answers = String::from_utf8(over(stream, &[]).answers).unwrap();
    assert!(answers.starts_with("+PONG\r\n%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"), "{answers}");
    let end = "*0\r\n+OK\r\n-NOPROTO unsupported protocol version\r\n+OK\r\n*0\r\n*0\r\n$2\r\n\
        hi\r\n+OK\r\n";
    assert!(answers.ends_with(end), "{answers}");
}

/// Encodes a transaction in the way clients send it.
fn transaction(commands: &[&[&[u8]]]) -> Vec<u8> {
    let commands = commands.iter().map(|words| request(words));
    [request(&[b"MULTI"]), commands.flatten().collect(), request(&[b"EXEC"])].concat()
}

#[test]
fn the_records_of_a_transaction_are_appended_as_a_whole() {
    let stream = [
        transaction(&[
            &[b"XADD", b"key", b"*", b"f", b"one"],
            &[b"PING"],
            &[b"RPUSH", b"key", b"two", b"three"],
        ]),
        transaction(&[&[b"XADD", b"key", b"*", b"a", b"1", b"b", b"2"]]),
        transaction(&[]),
        request(&[b"XADD", b"key", b"*", b"f", b"four"]),
    ]
    .concat();
    let outcome = over(&stream, &[]);
    assert_eq!(
        outcome.records,
        [&b"one"[..], b"two", b"three", b"\x1e[\"a\",\"1\",\"b\",\"2\"]", b"four"]
    );
    let answers = String::from_utf8(outcome.answers).unwrap();
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
    let executed = "*3\r\n$3\r\n0-1\r\n+PONG\r\n:3\r\n";
    let several = "+OK\r\n+QUEUED\r\n*1\r\n$3\r\n3-1\r\n";
    assert_eq!(answers, format!("{queued}{executed}{several}+OK\r\n*0\r\n$3\r\n4-1\r\n"));
}

#[test]
fn a_refused_transaction_appends_no_record() {
    let add: &[&[u8]] = &[b"XADD", b"key", b"*", b"f", b"value"];
    let long = [b'x'; 101];
    for (commands, last) in [
        (&[add, &[b"DEL", b"key"]][..], "-EXECABORT"),
        (&[add, &[b"XADD", b"key", b"5-1", b"f", b"v"]], "-EXECABORT"),
        (&[add, &[b"MULTI"]], "-EXECABORT"),
        (&[add, &[b"XREAD", b"STREAMS", b"key", b"0"]], "-EXECABORT"),
        (&[add, &[b"XADD", b"key", b"*", b"f", &long]], "-ERR the message has more than 100 bytes"),
        (&[add, &[b"DISCARD"]], "-ERR EXEC without MULTI"),
    ] {
        let outcome = over(&transaction(commands), &[]);
        let answers = String::from_utf8(outcome.answers).unwrap();
        let line = answers.lines().last().unwrap();
        assert!(line.starts_with(last) && outcome.records.is_empty(), "{answers}");
        assert_eq!(outcome.refused, None);
    }
    // The client never completes this transaction.
    let open = transaction(&[add]);
    assert!(over(&open[..open.len() - 2], &[]).records.is_empty());
}

#[test]
fn words_that_are_not_obeyed_are_errors() {
    for line in [
        "CLIENT REPLY OFF",
        "CLIENT REPLY SKIP",
        "CLIENT KILL 1",
        "SELECT 1",
        "CONFIG SET save x",
        "COMMAND KILL",
        "CLIENT SETNAME",
        "CLIENT NOSUCH",
        "CLIENT TRACKING ON",
        "SELECT x",
        "RPUSH key \"a b\"",
        "RPUSH key 'a'",
        "XINFO STREAM key",
        "XREVRANGE key + -",
        "XAUTOCLAIM key group reader 0 0",
        "XADD key NOMKSTREAM IDMPAUTO web * f v",
        "XREAD NOACK STREAMS key 0",
        "XACK key group 1-1",
        "HELLO 3 BADOPT x",
        "HELLO 3 AUTH x",
        "XADD key 5-1 f v",
        "XADD key MAXLEN many * f v",
        "XADD key MAXLEN 10 LIMIT 5 * f v",
        "XADD key MAXLEN ~ 10 LIMIT * f v",
        "XADD key BADOPT * f v",
        "WATCH key",
    ] {
        let outcome = over(format!("{line}\r\nPING\r\n").as_bytes(), &[]);
        let answers = String::from_utf8(outcome.answers).unwrap();
        assert!(answers.starts_with("-ERR") && answers.ends_with("+PONG\r\n"), "{answers}");
        assert!(outcome.records.is_empty(), "{line}");
    }
}

#[test]
fn http_and_other_garbage_is_one_refusal_and_no_record() {
    for stream in [
        &b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nRPUSH a b\r\n"[..],
        b"Host: 127.0.0.1\r\nRPUSH a b\r\n",
        b"*1\r\n:5\r\nRPUSH a b\r\n",
        b"*99999999999999999999\r\nRPUSH a b\r\n",
    ] {
        let outcome = over(stream, &[]);
        assert!(outcome.refused.is_some() && outcome.records.is_empty(), "{outcome:?}");
    }
}

#[test]
fn a_command_of_consumer_groups_is_told_what_to_do_instead() {
    for (line, instead) in [
        ("XREADGROUP GROUP g c STREAMS key >", "continue with XREAD"),
        ("XGROUP CREATE key g 0", "continue with XREAD"),
    ] {
        let answers = over(format!("{line}\r\n").as_bytes(), &[]).answers;
        let answers = String::from_utf8(answers).unwrap();
        assert!(answers.starts_with("-ERR") && answers.contains(instead), "{answers}");
    }
}

proptest! {
    #[test]
    fn the_answers_to_a_stream_are_the_same_however_it_is_split(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20),
        cuts in prop::collection::vec((1..60usize, 0..3usize), 1..10),
    ) {
        let mut stream = Vec::new();
        for chunk in values.chunks(3) {
            let words: Vec<&[u8]> = chunk.iter().map(Vec::as_slice).collect();
            stream.extend(request(&[&[b"RPUSH", &b"key"[..]], &words[..]].concat()));
            stream.extend(request(&[b"XADD", b"key", b"*", b"f", words[0]]));
            let pushes = [&[b"RPUSH", &b"key"[..]], &words[..]].concat();
            stream.extend(transaction(&[&pushes, &[b"ECHO", words[0]], &pushes]));
        }
        prop_assert_eq!(over(&stream, &cuts), over(&stream, &[]));
    }

    #[test]
    fn no_bytes_make_it_panic(
        stream in prop::collection::vec(
            prop::sample::select(b"*$123\r\nXADDPUSH :-".to_vec()),
            0..200,
        ),
        cuts in prop::collection::vec((1..60usize, 0..3usize), 1..10),
    ) {
        prop_assert_eq!(over(&stream, &cuts), over(&stream, &[]));
    }
}
