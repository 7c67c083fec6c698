use super::*;

#[test]
fn the_example_file_is_the_defaults() {
    let example = include_str!("../../../../bodkin.example.toml");
    assert_eq!(toml::from_str::<Settings>(example).unwrap(), Settings::defaults());
}

#[test]
fn an_unknown_key_is_refused_by_its_name() {
    let place = tempfile::TempDir::new().unwrap();
    let file = place.path().join("bodkin.toml");
    for (text, told) in [
        ("insecure = true\nprot_offset = 1\n", "in line 2: no option is called prot_offset. Did you mean port_offset?"),
        ("importance = 1\n", "in line 1: no option is called importance. bodkin up --print-config shows all there are"),
        ("\nport_offset = \"x\"\n", "in line 2: invalid type: string"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = read(&file).unwrap_err().to_string();
        assert!(refused.contains(told) && refused.lines().count() == 1, "{refused}");
    }
}

#[test]
fn every_token_ends() {
    let lifetimes = |default, maximum| {
        let settings =
            Settings { auth_token_ttl_in_minutes: Some(default), auth_token_ttl_max_in_minutes: Some(maximum), ..Settings::defaults() };
        token_lifetimes(&settings).ok().map(|lifetimes| (lifetimes.default.as_secs(), lifetimes.maximum.as_secs()))
    };
    assert_eq!((lifetimes(10, 1440), lifetimes(5, 5)), (Some((600, 86_400)), Some((300, 300))));
    for (default, maximum) in [(0, 1440), (10, 0), (10, 9), (10, TOKEN_TTL_MINUTES_MAX + 1), (u64::MAX, u64::MAX)] {
        assert_eq!(lifetimes(default, maximum), None, "{default} {maximum}");
    }
}

#[test]
fn ports_stay_ports() {
    assert_eq!(ports(Some(100)).unwrap(), [8543, 8545, 8541, 8555, 8540, 8549, 8553]);
    assert!(ports(Some(57_081)).is_err());
    assert_eq!(ports(None).unwrap(), [0; 7]);
}

#[test]
fn commands_look_where_bodkin_up_keeps_its_cloud() {
    let place = tempfile::tempdir().expect("a directory");
    let (here, file) = (place.path().join(".bodkin"), place.path().join("bodkin.toml"));
    assert_eq!(data_beside(&here, &file), here, "there is no file");
    std::fs::write(&file, "data = \"/var/lib/bodkin\"\n").expect("written");
    assert_eq!(data_beside(&here, &file), Path::new("/var/lib/bodkin"));
    std::fs::create_dir(&here).expect("made");
    assert_eq!(data_beside(&here, &file), here, "whoever began in a folder finds that cloud");
    std::fs::remove_dir(&here).expect("removed");
    for text in ["data = 5\n", "data = \"\"\n", "port_offset = 1\n"] {
        std::fs::write(&file, text).expect("written");
        assert_eq!(data_beside(&here, &file), here, "{text}");
    }
}

#[test]
fn commands_reach_the_cloud_where_the_operators_file_has_it_listen() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("bodkin.toml");
    assert_eq!(host_of(&file).to_string(), "127.0.0.1", "there is no file");
    for (listen, host) in [("192.0.2.7", "192.0.2.7"), ("::1", "::1"), ("0.0.0.0", "127.0.0.1"), ("a name", "127.0.0.1")] {
        std::fs::write(&file, format!("listen = \"{listen}\"\n")).expect("written");
        assert_eq!(host_of(&file).to_string(), host, "{listen}");
    }
}

#[test]
fn commands_add_the_offset_of_the_operators_file() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("bodkin.toml");
    assert_eq!(offset_of(&file), 0, "there is no file");
    for (text, offset) in
        [("port_offset = 100", 100), ("port_offset = -1", 0), ("data = \"/d\"", 0), ("port_offset = 100\nany_port = true", 0)]
    {
        std::fs::write(&file, text).expect("written");
        assert_eq!(offset_of(&file), offset, "{text}");
    }
}

#[test]
fn state_is_kept_where_this_process_may_write() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("file"), "").expect("written");
    let verdicts = [".", "state", "state/deeper", "file/state"].map(|path| is_ours(&place.path().join(path)));
    assert_eq!(verdicts, [true, true, true, false]);
    assert!(is_ours(Path::new("state")), "in the folder where it is started");
}

#[test]
fn event_types_of_from_fleet_are_durable() {
    let text = "insecure = true\ndurable_event_types = ['door']\n[fleet]\nservers = ['nats://a']\nedge = 'e'\nfrom_fleet = ['Setpoint', 'weather']\n";
    let settings: Settings = toml::from_str(text).unwrap();
    let config = settings.or(Settings::defaults()).config().unwrap();
    let durable: Vec<&str> = config.durable_event_types.iter().map(EventType::as_str).collect();
    assert_eq!(durable, ["DOOR", "SETPOINT", "WEATHER"]);
}
