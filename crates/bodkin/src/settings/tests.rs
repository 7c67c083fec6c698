use super::*;

#[test]
fn the_example_file_is_the_defaults() {
    let example = include_str!("../../../../bodkin.example.toml");
    assert_eq!(toml::from_str::<Settings>(example).unwrap(), Settings::defaults());
}

#[test]
fn an_unknown_key_is_refused_by_its_name() {
    let refused = toml::from_str::<Settings>("prot_offset = 1").unwrap_err().to_string();
    assert!(refused.contains("prot_offset") && refused.contains("port_offset"), "{refused}");
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
