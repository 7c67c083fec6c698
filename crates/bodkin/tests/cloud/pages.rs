//! Pages of the documentation whose commands are run, as `docs/README.md` says: what they print is what the page shows.

mod readme;
mod terminal;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use self::terminal::{Other, Place, Terminal};
use crate::commands::{bodkin, ended};
use crate::secure::{key_stores, put_key_store};
use crate::support::cloud::Launch;
use crate::support::patience::eventually;
use crate::support::ports::{HeldOffset, held_offset};
use crate::support::secure::anchor;

/// Ports of a cloud, which a page names.
const PORTS: [u16; 12] = [5570, 5571, 5572, 5573, 8440, 8441, 8443, 8445, 8449, PROVIDER, 8453, 8455];
/// That of a provider which a page starts: between those of the cloud, where no other cloud has any.
const PROVIDER: u16 = 8450;
/// By how much a page moves the ports of its second cloud.
const SECOND: u16 = 100;
/// What a page calls `$ZMTP_C`.
const SOURCES_IN_C: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../zmtp-c");
/// Where the nets of the examples are.
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors");
/// A dump of a cloud of the Java systems in which a display may read a sensor's temperature.
const OLD_CLOUD: &str = "INSERT INTO service_interface (id, interface_name) VALUES (3, 'HTTP-SECURE-JSON');
INSERT INTO system_ (id, system_name, address, port) VALUES (12, 'sensor', '192.0.2.1', 9000), (13, 'display', '192.0.2.2', 9001);
INSERT INTO service_definition (id, service_definition) VALUES (30, 'temperature');
INSERT INTO service_registry (id, service_id, system_id, service_uri, secure, version) VALUES (40, 30, 12, '/temperature', 'CERTIFICATE', 1);
INSERT INTO service_registry_interface_connection (id, service_registry_id, interface_id) VALUES (1, 40, 3);
INSERT INTO authorization_intra_cloud (id, consumer_system_id, provider_system_id, service_id) VALUES (50, 13, 12, 30);
INSERT INTO authorization_intra_cloud_interface_connection (id, authorization_intra_cloud_id, interface_id) VALUES (1, 50, 3);
";
/// How often a cloud of another terminal is waited for: it makes keys, where many others do.
const PATIENCES: u32 = 3;
/// Stands for anything.
const ANYTHING: &str = "...";

/// What a test leaves out of measurements that take minutes on a machine that does nothing else: the page's words, and those that take their place. How good a prediction is that was
/// made of so little is not this test's to say: `validate` may end with 4.
const SMALL: [(&str, &str); 7] = [
    ("--load A,B6,C --repeat 10", "--load 1x1 --repeat 1 --seconds 1 --orchestrations 0 --events 2000 || test $? = 4"),
    (
        "model calibrate --out nets",
        "model calibrate --out nets --load 1x1,1x2 --repeat 1 --seconds 1 --orchestrations 100 --services 10 --events 2000",
    ),
    ("--consumers 8 --cores 4", "--consumers 8 --cores 4 --events 2000 --calibrated-within 1000"),
    (
        "model calibrate --out press --graph press.toml --graph-load 50,100",
        "model calibrate --out press --graph press.toml --graph-load 100 --load 1x1 --repeat 1 --seconds 1 --orchestrations 0 --events 1000",
    ),
    ("--graph-load 150:2 --cores 4", "--graph-load 150:2 --cores 4 --events 1000 --calibrated-within 1000"),
    ("--subscribers 10\n", "--subscribers 10 --events 2000 --calibrated-within 1000\n"),
    ("--rate 500\n", "--rate 5 --events 2000 --calibrated-within 1000\n"),
];

/// A fence, and what is printed there if the page shows it.
struct Block {
    line: usize,
    is_other: bool,
    commands: String,
    shown: Option<String>,
}

/// The fences that are run of a page, or of one of its sections.
fn blocks(page: &str, section: Option<&str>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(usize, String, String)> = None;
    // A fence of what is printed stands behind the fence it belongs to.
    let mut follows = false;
    let mut is_inside = section.is_none();
    for (line, text) in (1..).zip(page.lines()) {
        if let (Some(section), Some(heading), None) = (section, text.strip_prefix("## "), &open) {
            is_inside = heading == section;
        }
        if !is_inside {
            continue;
        }
        match (text.strip_prefix("```"), open.take()) {
            (Some(info), None) => open = Some((line, info.trim().to_owned(), String::new())),
            (Some(_), Some((line, info, commands))) => match info.as_str() {
                "sh measured" => {
                    let commands = SMALL.iter().fold(commands, |commands, (shown, small)| commands.replace(shown, small));
                    blocks.push(Block { line, is_other: false, commands, shown: None });
                    follows = false;
                }
                "sh" | "sh other" => {
                    blocks.push(Block { line, is_other: info == "sh other", commands, shown: None });
                    follows = true;
                }
                "text" if follows => {
                    blocks.last_mut().expect("it follows a block").shown = Some(commands);
                    follows = false;
                }
                _ => follows = false,
            },
            (None, Some((line, info, inside))) => open = Some((line, info, inside + text + "\n")),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence has no end");
    blocks
}

/// Ports and port offsets of a page's text, moved to free ones: those of its first cloud, and those of its second.
struct Moves([u16; 2]);

impl Moves {
    fn of(&self, text: &str) -> String {
        let mut moved = text.replace(&format!("--port-offset {SECOND}"), &format!("--port-offset {}", self.0[1]));
        moved = moved.replace(&format!("--port {PROVIDER} "), &format!("--port {} ", PROVIDER + self.0[0]));
        for host in ["localhost", "127.0.0.1"] {
            let first = PORTS.iter().map(|port| (*port, port + self.0[0]));
            // Nodes of a pair and relays are of no cloud's ports.
            let second = PORTS.iter().filter(|port| !(5571..=5573).contains(*port)).map(|port| (port + SECOND, port + self.0[1]));
            // Through names that are no ports: none is moved twice.
            let all: Vec<(u16, u16)> = first.chain(second).collect();
            for (index, (from, _)) in all.iter().enumerate() {
                moved = moved.replace(&format!("{host}:{from}"), &format!("{host}:<{index}>"));
            }
            for (index, (_, to)) in all.iter().enumerate() {
                moved = moved.replace(&format!("{host}:<{index}>"), &format!("{host}:{to}"));
            }
        }
        moved
    }
}

/// The first shown line that is not printed behind those in front of it.
fn missing<'s>(shown: &'s str, printed: &str) -> Option<&'s str> {
    let mut lines = printed.lines();
    shown.lines().filter(|line| !line.trim().is_empty()).find(|expected| !lines.any(|line| fits(expected.trim(), line.trim())))
}

/// Whether a line is what is expected, in which `...` stands for anything, and blanks for any number of them.
fn fits(expected: &str, line: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (expected, line) = (words(expected), words(line));
    let mut parts = expected.split(ANYTHING);
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    match last {
        None => rest.is_empty(),
        Some(part) => part.is_empty() || rest.is_empty() || line.ends_with(part),
    }
}

/// Runs a page from its first command to its last in a folder of its own.
#[track_caller]
fn check(name: &str) {
    check_in(name, None, |_| {});
}

/// The same of a section, if one is named, in a folder that has what it takes for granted.
#[track_caller]
fn check_in(name: &str, section: Option<&str>, furnish: impl FnOnce(&Path)) {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).expect("the page is there");
    let offsets = [held_offset(), held_offset()];
    let moves = Moves(offsets.each_ref().map(HeldOffset::get));
    let place = Place::new();
    furnish(place.path());
    place.hand_over();
    let environment = BTreeMap::from([("BODKIN_PORT_OFFSET", moves.0[0].to_string()), ("ZMTP_C", SOURCES_IN_C.to_owned())]);
    let mut terminal = Terminal::open(&place, &environment);
    // Those of other terminals go on until the page's end.
    let mut others = Vec::new();
    let blocks = blocks(&page, section);
    assert!(!blocks.is_empty(), "{name} {section:?} has no fence to run");
    for Block { line, is_other, commands, shown } in blocks {
        let (commands, shown) = (moves.of(&commands), moves.of(&shown.unwrap_or_default()));
        let told = |printed: &str, missing: &str| {
            format!("docs/{name}, fence of line {line}\n{commands}does not print\n  {missing}\nbut\n{printed}")
        };
        if is_other {
            let other = Other::start(&place, &environment, &commands);
            (0..PATIENCES).any(|_| eventually(|| missing(&shown, &other.printed()).is_none() || other.has_ended()));
            let printed = other.printed();
            assert!(!other.has_ended(), "docs/{name}, fence of line {line}: it has ended:\n{printed}");
            if let Some(missing) = missing(&shown, &printed) {
                panic!("{}", told(&printed, missing));
            }
            others.push(other);
            continue;
        }
        let (printed, is_done) = terminal.run(&commands);
        let of_others = || others.iter().map(Other::printed).collect::<Vec<_>>().join("\n---\n");
        assert!(is_done, "docs/{name}, fence of line {line}\n{commands}fails:\n{printed}\nother terminals:\n{}", of_others());
        if let Some(missing) = missing(&shown, &printed) {
            panic!("{}", told(&printed, missing));
        }
    }
}

#[test]
fn the_tutorial_is_as_it_says() {
    check("tutorial.md");
}

#[test]
fn a_graph_is_as_its_page_says() {
    check("how-to/graph.md");
}

#[test]
fn a_reliable_pair_is_as_its_page_says() {
    check("how-to/reliable-pair.md");
}

#[test]
fn two_clouds_are_as_their_page_says() {
    check("how-to/two-clouds.md");
}

#[test]
fn a_tunnel_is_as_its_page_says() {
    check("how-to/tunnel.md");
}

#[test]
fn the_move_from_the_java_systems_is_as_its_page_says() {
    check_in("how-to/move-from-java.md", None, |place| {
        let stores = key_stores(&[anchor()]);
        for system in ["gatekeeper", "gateway", "sysop"] {
            put_key_store(stores.path(), system);
        }
        fs::rename(stores.path().join("password"), place.join("password")).expect("it is moved");
        fs::create_dir(place.join("certificates")).expect("a folder");
        for store in fs::read_dir(stores.path()).expect("a folder").flatten() {
            fs::rename(store.path(), place.join("certificates").join(store.file_name())).expect("it is moved");
        }
        fs::write(place.join("arrowhead.sql"), OLD_CLOUD).expect("a file");
    });
}

#[test]
fn a_sensor_node_is_as_its_page_says() {
    check("how-to/sensor-node.md");
}

#[test]
fn a_backup_is_as_its_page_says() {
    check("how-to/backup.md");
}

#[test]
fn a_secure_cloud_by_hand_is_as_its_page_says() {
    check("how-to/by-hand.md");
}

#[test]
fn an_insecure_cloud_by_hand_is_as_its_page_says() {
    check("how-to/by-hand-insecure.md");
}

#[test]
fn certificates_are_made_as_their_page_says() {
    check("how-to/certificates.md");
}

#[test]
fn nets_are_solved_as_their_page_says() {
    check_in("how-to/nets.md", None, |place| {
        symlink(Path::new(VECTORS), place.join("vectors")).expect("it is the folder of the sources, as far as nets are read there");
    });
}

#[test]
fn a_prediction_is_as_its_page_says() {
    check("how-to/predict.md");
}

/// Its commands are for servers that not every machine has. Without them its configuration is taken, and that nobody is reached is told as the page says.
#[test]
fn a_fleets_edge_is_configured_as_its_page_says() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/fleet.md")).expect("the page is there");
    let tables: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let place = TempDir::new().expect("a temporary directory");
    let [config, password] = ["bodkin.toml", "fleet-password"].map(|name| place.path().join(name));
    fs::write(&password, "swordfish\n").expect("a file");
    fs::set_permissions(&password, Permissions::from_mode(0o600)).expect("it is ours");
    // The page comes back to a table that is there once in a file.
    let (of_fleet, others): (Vec<&str>, Vec<&str>) = tables.iter().partition(|table| table.starts_with("[fleet]\n"));
    let of_fleet: String = of_fleet.iter().map(|table| table.trim_start_matches("[fleet]\n")).collect();
    let configuration =
        format!("[fleet]\n{of_fleet}{}", others.concat()).replace("/etc/bodkin/fleet-password", password.to_str().expect("text"));
    fs::write(&config, configuration).expect("a file");
    let cloud = Launch::new().flags(["--config", config.to_str().expect("text")]).start();
    let command = page.split('`').find(|text| text.starts_with("bodkin topic add ")).expect("a topic is marked while the cloud runs");
    let command = command.trim_start_matches("bodkin ").replace("temperature", "humidity");
    ended(&cloud, &command, 0);
    let fleet = cloud.get("/api/v1/fleet").expect_status(200).json();
    let lanes: Vec<&str> = fleet["lanes"].as_array().expect("a list").iter().filter_map(|lane| lane["name"].as_str()).collect();
    assert_eq!((&fleet["edge"], lanes), (&"edge-7".into(), vec!["events", "alarms"]), "{fleet}");
    assert!(fleet["fromFleet"].is_object(), "{fleet}");
    let topics = cloud.get("/api/v1/topics").expect_status(200).json();
    let marked = topics["data"].as_array().expect("a list").iter().filter(|topic| topic["fleet"] == true).count();
    assert_eq!(marked, 2, "{topics}");
    // In the first seconds it is connecting, which is no trouble.
    let is_told = || bodkin(&cloud, "status").status.code() == Some(1);
    assert!(eventually(is_told), "{}", cloud.stderr());
    let status = ended(&cloud, "status", 1);
    assert!(status.contains("events do not reach the fleet's stream"), "{status}");
}

#[test]
fn a_line_that_is_not_printed_is_found() {
    let printed = "ready in 12.3 ms\nID  NAME\n1   sensor\n";
    assert_eq!(missing("ready in ... ms\n1 sensor\n", printed), None);
    assert_eq!(missing("1 sensor\nready in ... ms\n", printed), Some("ready in ... ms"));
    assert_eq!(missing("ready in ... s\n", printed), Some("ready in ... s"));
    assert_eq!(missing("ID\n", printed), Some("ID"));
    assert_eq!(missing("... NAME\n... sensor\n", printed), None);
}

#[test]
fn ports_are_moved_once() {
    let moves = Moves([100, 12_000]);
    assert_eq!(
        moves.of("localhost:8443 127.0.0.1:8543 127.0.0.1:5572 --port-offset 100 x:8443 --port 8450 "),
        "localhost:8543 127.0.0.1:20443 127.0.0.1:5672 --port-offset 12000 x:8443 --port 8550 "
    );
}
