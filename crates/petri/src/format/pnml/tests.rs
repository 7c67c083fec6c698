use super::*;

/// A document with one place/transition net of these parts, which begin on its second line.
fn document_of(parts: &str) -> String {
    format!("<pnml><net id=\"n\" type=\"http://{TYPE}\">\n{parts}</net></pnml>")
}

#[test]
fn what_is_written_is_read_back_the_same() {
    for text in [
        include_str!("../../../../../vectors/petri/nets/intracloud.json"),
        include_str!("../../../../../vectors/petri/nets/event_handler_k4_p4_c4_is.json"),
    ] {
        let net = json::read(text).expect("it is right");
        assert_eq!(read(&write(&net)).expect("what is written is right"), net);
    }
}

#[test]
fn a_net_of_another_program_is_read() {
    let text = r#"<pnml xmlns="http://www.pnml.org/version-2009/grammar/pnml"><net id="n" type="http://www.pnml.org/version-2009/grammar/ptnet"><page id="a">
        <place id="p"><initialMarking><text> 3 </text></initialMarking></place><place id="q"><name><text>Q</text></name></place>
        <transition id="t"/><arc id="1" source="p" target="t"><inscription><text>2</text></inscription></arc>
        <arc id="2" source="t" target="q"/><arc id="3" source="q" target="t"><type value="inhibitor"/></arc></page></net></pnml>"#;
    let net = read(text).expect("it is right");
    let transition = &net.transitions()[0];
    assert_eq!((net.places()[0].initial, net.places()[1].name.as_str()), (3, "Q"));
    assert_eq!((&transition.inputs, &transition.inhibitors), (&vec![Arc { place: 0, weight: 2 }], &vec![Arc { place: 1, weight: 1 }]));
}

#[test]
fn several_arcs_between_the_same_two_mean_what_each_of_them_does() {
    let arc = |kind: &str, weight: u32| {
        format!(
            "<arc id=\"{kind}{weight}\" source=\"p\" target=\"t\"><inscription><text>{weight}</text></inscription><type value=\"{kind}\"/></arc>"
        )
    };
    let arcs: String = [("normal", [2, 3]), ("inhibitor", [9, 7]), ("test", [2, 3])]
        .iter()
        .flat_map(|(kind, weights)| weights.map(|weight| arc(kind, weight)))
        .collect();
    let net = read(&document_of(&format!("<place id=\"p\"/><transition id=\"t\"/>{arcs}"))).expect("it is right");
    let weights = [&net.transitions()[0].inputs, &net.transitions()[0].inhibitors, &net.transitions()[0].tests].map(|list| list[0].weight);
    assert_eq!(weights, [5, 7, 3], "both are taken, seven inhibit already, three have to be there");
}

#[test]
fn mistakes_are_told_with_their_line() {
    for (parts, reason) in [
        ("<place/>", "line 2, place: it has no id"),
        ("<place id=\"p\"/><arc id=\"a\" source=\"p\" target=\"x\"/>", "line 2, arc a: it leads from p to x"),
        ("<place id=\"p\"><initialMarking><text>-1</text></initialMarking></place>", "line 2, place p: initialMarking is -1"),
        ("<place id=\"p\"/><transition id=\"t\"><toolspecific tool=\"bodkin\">{}</toolspecific></transition>", "line 2, transition t"),
        ("<place id=\"p\"/><place id=\"p\"/>", "line 2, place p: its id is there twice"),
    ] {
        let error = read(&document_of(parts)).expect_err(parts).to_string();
        assert!(error.contains(reason), "{parts}: {error}");
    }
}

/// A net of coloured tokens would otherwise be one without tokens.
#[test]
fn a_net_of_another_type_is_refused() {
    let of_type =
        |kind: &str| format!("<pnml><net id=\"n\"{kind}><page id=\"g\"><place id=\"p\"/><transition id=\"t\"/></page></net></pnml>");
    let standard = "http://www.pnml.org/version-2009/grammar";
    for (kind, reason) in [
        (
            format!(" type=\"{standard}/symmetricnet\""),
            "line 1, net n: its type is http://www.pnml.org/version-2009/grammar/symmetricnet; expected a place/transition net",
        ),
        (format!(" type=\"{standard}/highlevelnet\""), "its type is"),
        (format!(" type=\"{standard}/pt-hlpng\""), "its type is"),
        (" type=\"P/T nets\"".to_owned(), "its type is P/T nets"),
        (String::new(), "it has no type; expected a place/transition net"),
    ] {
        let error = read(&of_type(&kind)).expect_err(&kind).to_string();
        assert!(error.contains(reason), "{kind}: {error}");
    }
    for kind in [
        "http://www.pnml.org/version-2009/grammar/pnmlcoremodel",
        "https://www.pnml.org/version-2009/extensions/inhibitorptnet",
        "http://www.informatik.hu-berlin.de/top/pntd/ptNetb",
    ] {
        let net = read(&of_type(&format!(" type=\"{kind}\""))).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!((net.places().len(), net.transitions().len()), (1, 1));
    }
}

#[test]
fn of_several_nets_one_is_chosen_by_its_id() {
    let net = |id: &str, tokens: u32| {
        format!(
            "<net id=\"{id}\" type=\"http://{TYPE}\"><place id=\"p\"><initialMarking><text>{tokens}</text></initialMarking></place><transition id=\"t\"/></net>"
        )
    };
    let text = format!("<pnml>{}{}</pnml>", net("first", 1), net("second", 2));
    let initial = |which: &str| document(&text, Some(which)).expect(which).net.initial();
    assert_eq!((initial("first"), initial("second")), (vec![1], vec![2]));
    assert_eq!(
        read(&text).expect_err("two").to_string(),
        "the document has 2 nets: first, second; expected one of them to be chosen by its id"
    );
    assert_eq!(
        document(&text, Some("third")).expect_err("none").to_string(),
        "the document has 2 nets: first, second; expected one with the id third"
    );
    let alone = format!("<pnml>{}</pnml>", net("first", 1));
    assert!(document(&alone, Some("second")).expect_err("another").to_string().starts_with("the document has 1 net: first; "));
}

#[test]
fn what_may_change_the_meaning_is_refused_and_other_tools_are_told() {
    for (parts, reason) in [
        ("<place id=\"p\"><hlinitialMarking/></place>", "line 2, place p: its hlinitialMarking is not understood"),
        (
            "<place id=\"p\"><capacity><text>3</text></capacity></place>",
            "line 2, place p: its capacity is not understood and may change what it means",
        ),
        (
            "<place id=\"p\"><initialMarking><value>Red,1</value></initialMarking></place>",
            "line 2, place p: initialMarking is Red,1; expected a whole number",
        ),
        ("<place id=\"p\"><initialMarking/></place>", "its initialMarking has no text"),
        ("<transition id=\"t\"><rate><value>2</value></rate></transition>", "line 2, transition t: its rate is not understood"),
        ("<declaration/>", "net n: its declaration is not understood"),
        (
            "<place id=\"p\"/><transition id=\"t\"/><arc id=\"a\" source=\"p\" target=\"t\"><type value=\"reset\"/></arc>",
            "line 2, arc a: its type is reset; expected normal, inhibitor, test or read",
        ),
        (
            "<place id=\"p\"/><transition id=\"t\"/><arc id=\"a\" source=\"t\" target=\"p\"><type value=\"inhibitor\"/></arc>",
            "expected normal",
        ),
        (
            "<transition id=\"t\"><toolspecific tool=\"bodkin\" version=\"2\">{}</toolspecific></transition>",
            "version 2 of bodkin's own element was found; expected 1",
        ),
    ] {
        let error = read(&document_of(parts)).expect_err(parts).to_string();
        assert!(error.contains(reason), "{parts}: {error}");
    }
    let tools = "<toolspecific tool=\"WoPeD\" version=\"1.0\"><place id=\"of the tool\"/></toolspecific>";
    let drawn = "<graphics><position x=\"1\" y=\"2\"/></graphics>";
    let marking = "<initialMarking><text>2</text><toolspecific tool=\"tokens\" version=\"1\"/></initialMarking>";
    let found = document(&document_of(&format!("{tools}<place id=\"p\">{drawn}{tools}{marking}</place><transition id=\"t\"/>")), None)
        .expect("it is right");
    assert_eq!(found.net.initial(), [2], "places of another tool are none of the net");
    assert_eq!(found.passed_over.into_iter().collect::<Vec<_>>(), [("WoPeD".to_owned(), 2), ("tokens".to_owned(), 1)]);
}

#[test]
fn arcs_follow_the_stand_ins_of_other_pages() {
    let pages = |reference: &str| {
        document_of(&format!(
            "<page id=\"a\"><place id=\"p\"/></page><page id=\"b\"><referencePlace id=\"r\" ref=\"s\"/><referencePlace id=\"s\" ref=\"{reference}\"/>\
             <transition id=\"t\"/><arc id=\"1\" source=\"r\" target=\"t\"/></page>"
        ))
    };
    let net = read(&pages("p")).expect("it is right");
    assert_eq!(net.transitions()[0].inputs, [Arc { place: 0, weight: 1 }]);
    for (reference, told) in
        [("t", "it stands for s; expected a place of the net"), ("r", "it stands for s"), ("x", "expected a place of the net")]
    {
        let error = read(&pages(reference)).expect_err(reference).to_string();
        assert!(error.contains(told), "{reference}: {error}");
    }
}

#[test]
fn repeated_labels_are_completed_by_ids() {
    let named = |kind: &str, id: &str, label: &str| format!("<{kind} id=\"{id}\"><name><text>{label}</text></name></{kind}>");
    let parts = [named("place", "p1", "in"), named("place", "p2", "in"), named("place", "p3", "out"), named("transition", "t1", "check")];
    let arcs = "<arc id=\"a\" source=\"p1\" target=\"t1\"/><arc id=\"b\" source=\"t2\" target=\"p2\"/>";
    let net = read(&document_of(&format!("{}{}{arcs}", parts.concat(), named("transition", "t2", "check")))).expect("labels may repeat");
    let names: Vec<&str> = net.places().iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["in (p1)", "in (p2)", "out"]);
    assert_eq!([net.place("in (p2)"), net.place("p2"), net.place("in"), net.transition("t2")], [Some(1), Some(1), None, Some(1)]);
    assert_eq!((net.transitions()[0].inputs[0].place, net.transitions()[1].outputs[0].place), (0, 1));
    assert_eq!(read(&write(&net)).expect("what is written is right").place("in (p2)"), Some(1));
}

#[test]
fn files_of_pipe_and_of_prom_are_read() {
    let of_pipe = |place: &str, transition: &str| {
        format!(
            "<pnml><net id=\"Net-One\" type=\"P/T net\"><token id=\"Default\" enabled=\"true\" red=\"0\"/><labels x=\"1\"><text>a note</text></labels>\n\
             <place id=\"P0\"><graphics/><name><value>P zero</value></name><initialMarking><value>Default,3</value></initialMarking>{place}</place>\n\
             <transition id=\"T0\"><name><value>T0</value></name><orientation><value>0</value></orientation>{transition}</transition>\n\
             <arc id=\"P0 to T0\" source=\"P0\" target=\"T0\"><inscription><value>Default,2</value></inscription><tagged><value>false</value></tagged>\
             <arcpath id=\"000\" x=\"1\" y=\"2\" curvePoint=\"false\"/><type value=\"normal\"/></arc></net></pnml>"
        )
    };
    let part = |name: &str, value: &str| format!("<{name}><value>{value}</value></{name}>");
    let unlimited = part("capacity", "0");
    let timed = [part("rate", "2.5"), part("timed", "true"), part("infiniteServer", "true"), part("priority", "1")].concat();
    let net = read(&of_pipe(&unlimited, &timed)).expect("it is right");
    assert_eq!((net.places()[0].name.as_str(), net.initial(), net.transitions()[0].inputs[0].weight), ("P zero", vec![3], 2));
    let found = net.transitions()[0].timed().expect("it is timed");
    assert_eq!(found.servers, Servers::Infinite);
    assert!(matches!(&found.delay, Delay::Distribution(law) if (law.mean() - 0.4).abs() < 1e-15));
    let immediate = [part("rate", "3"), part("timed", "false"), part("priority", "2")].concat();
    let net = read(&of_pipe("", &immediate)).expect("it is right");
    assert_eq!(net.transitions()[0].firing, Firing::Immediate { priority: 2, weight: 3.0 });
    for (place, transition, reason) in [
        (part("capacity", "4"), "", "line 2, place P0: its capacity is not understood and may change what it means"),
        (String::new(), "<timed><value>perhaps</value></timed>", "line 3, transition T0: timed is perhaps; expected true or false"),
    ] {
        let error = read(&of_pipe(&place, transition)).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let colored = of_pipe("", "").replace("<token id=\"Default\"", "<token id=\"Red\"/><token id=\"Default\"");
    assert!(read(&colored).expect_err("two kinds of token").to_string().contains("its token is not understood"));

    let final_markings = "<place id=\"p\"/><transition id=\"t\"/><finalmarkings><marking><place idref=\"p\"><text>1</text></place></marking></finalmarkings>";
    let found = document(&document_of(final_markings), None).expect("they say nothing of what the net does");
    assert_eq!(found.passed_over.into_iter().collect::<Vec<_>>(), [("ProM (finalmarkings)".to_owned(), 1)]);
}

/// A place, a transition and an arc with these attributes.
fn with_attributes(place: &str, transition: &str, arc: &str) -> String {
    document_of(&format!("<place id=\"p\" {place}/>\n<transition id=\"t\" {transition}/>\n<arc id=\"a\" source=\"p\" target=\"t\" {arc}/>"))
}

#[test]
fn attributes_of_tapaal_are_read() {
    let place = "displayName=\"true\" initialMarking=\"3\" invariant=\"&lt; inf\" name=\"Start\" nameOffsetX=\"-5\" positionY=\"60\"";
    let transition = "angle=\"0\" infiniteServer=\"false\" name=\"Go\" player=\"0\" priority=\"0\" urgent=\"false \"";
    let read_arc = |arc: &str| {
        let net = read(&with_attributes(place, transition, arc)).unwrap_or_else(|error| panic!("{arc}: {error}"));
        assert_eq!((net.places()[0].name.as_str(), net.initial(), net.transitions()[0].name.as_str()), ("Start", vec![3], "Go"));
        let weights = |list: &[Arc]| list.iter().map(|arc| arc.weight).collect::<Vec<_>>();
        let transition = &net.transitions()[0];
        [weights(&transition.inputs), weights(&transition.inhibitors)]
    };
    for (arc, expected) in [
        ("", [vec![1], vec![]]),
        ("type=\"inhibitor\"", [vec![], vec![1]]),
        ("type=\"inhibitor\" inscription=\"2\"", [vec![], vec![2]]),
        ("type=\"tapnInhibitor\" inscription=\"[0,inf)\" weight=\"2\"", [vec![], vec![2]]),
        ("type=\"timed\" inscription=\"[0, inf)\" weight=\"3\" nameOffsetX=\"0\"", [vec![3], vec![]]),
        ("type=\"normal\" inscription=\"1\" weight=\"2\"", [vec![2], vec![]]),
    ] {
        assert_eq!(read_arc(arc), expected, "{arc}");
    }
}

#[test]
fn attributes_that_may_change_the_meaning_are_refused() {
    for (place, transition, arc, reason) in [
        ("", "", "type=\"reset\"", "line 4, arc a: its type is reset; expected normal, inhibitor, test or read"),
        ("", "", "type=\"transport\"", "its type is transport"),
        ("", "", "type=\"timed\" inscription=\"[2,5]\"", "inscription is [2,5]; expected a whole number"),
        ("", "", "inscription=\"2\" weight=\"3\"", "its inscription is 2, and its weight is 3"),
        ("", "", "reset=\"true\"", "line 4, arc a: its attribute reset is not understood and may change what it means"),
        ("capacity=\"2\"", "", "", "line 2, place p: its attribute capacity is 2, which has no meaning here; expected 0"),
        ("initialMarking=\"two\"", "", "", "initialMarking is two; expected a whole number"),
        ("invariant=\"&lt;= 5\"", "", "", "its attribute invariant is <= 5"),
        ("", "urgent=\"true\"", "", "line 3, transition t: its attribute urgent is true"),
        ("", "priority=\"2\"", "", "its attribute priority is 2"),
        ("", "distribution=\"constant\" value=\"1.0\"", "", "its attribute distribution is not understood"),
    ] {
        let text = with_attributes(place, transition, arc);
        let error = read(&text).expect_err(&text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let two = "<place id=\"p\" initialMarking=\"1\"><initialMarking><text>2</text></initialMarking></place>";
    let error = read(&document_of(two)).expect_err("two markings").to_string();
    assert!(error.contains("its initialMarking is 2, and its attribute initialMarking is 1"), "{error}");
    let twice =
        "<place id=\"p\"/><transition id=\"t\"/><arc id=\"a\" source=\"p\" target=\"t\" type=\"inhibitor\"><type value=\"test\"/></arc>";
    let error = read(&document_of(twice)).expect_err("two types").to_string();
    assert!(error.contains("its type is test, and it is inhibitor"), "{error}");
    let marking = "<place id=\"p\"><initialMarking value=\"3\"/></place>";
    let error = read(&document_of(marking)).expect_err("a value that nobody reads").to_string();
    assert!(error.contains("its attribute value is not understood"), "{error}");
}

/// Whatever an unknown attribute is called and wherever it is, the file is refused with its name and line.
#[test]
fn unknown_attributes_are_never_passed_over() {
    let elements = [
        ("pnml", 1),
        ("net id=\"n\" type=\"http://www.pnml.org/version-2009/grammar/ptnet\"", 1),
        ("page id=\"g\"", 2),
        ("place id=\"p\"", 3),
        ("initialMarking", 3),
        ("transition id=\"t\"", 4),
        ("arc id=\"a\" source=\"p\" target=\"t\"", 5),
        ("inscription", 5),
    ];
    let text = "<pnml><net id=\"n\" type=\"http://www.pnml.org/version-2009/grammar/ptnet\">\n<page id=\"g\">\n\
                <place id=\"p\"><initialMarking><text>1</text></initialMarking></place>\n<transition id=\"t\"/>\n\
                <arc id=\"a\" source=\"p\" target=\"t\"><inscription><text>1</text></inscription></arc></page></net></pnml>";
    assert!(read(text).is_ok());
    for (element, line) in elements {
        for name in ["colour", "reset", "guard", "min", "Type"] {
            let changed = text.replacen(&format!("<{element}"), &format!("<{element} {name}=\"1\""), 1);
            let error = read(&changed).expect_err(&changed).to_string();
            assert!(
                error.contains(&format!("line {line}, ")) && error.contains(&format!("attribute {name} ")),
                "{element} {name}: {error}"
            );
        }
    }
}
