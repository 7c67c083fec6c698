//! Temperatures from `/sys`: thermal zones and hardware monitors, where the machine has them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{Absent, Reading, Sensor};

const THERMAL: &str = "/sys/class/thermal";
const HARDWARE_MONITORS: &str = "/sys/class/hwmon";
const MILLIDEGREES_PER_DEGREE: f64 = 1000.0;

/// The hottest temperature, and each by the kernel's name for it, in degrees Celsius.
#[derive(Debug)]
pub struct Temperature;

impl Sensor for Temperature {
    fn service(&self) -> &'static str {
        "temperature"
    }

    fn unit(&self) -> &'static str {
        "celsius"
    }

    fn read(&mut self) -> Result<Reading, Absent> {
        let mut parts = zones(Path::new(THERMAL));
        parts.extend(monitors(Path::new(HARDWARE_MONITORS)));
        match parts.values().copied().reduce(f64::max) {
            Some(value) => Ok(Reading { value, parts }),
            None => Err(Absent::new(format!("no sensor under {THERMAL} or {HARDWARE_MONITORS}"))),
        }
    }
}

/// `thermal_zone*/temp`, named by the zone and its `type`.
fn zones(folder: &Path) -> BTreeMap<String, f64> {
    let zone = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("thermal_")?.to_owned();
        let kind = fs::read_to_string(path.join("type")).unwrap_or_default();
        Some((format!("{name} {}", kind.trim()).trim_end().to_owned(), celsius(&path.join("temp"))?))
    };
    entries(folder).filter_map(zone).collect()
}

/// `hwmon*/temp*_input`, named by the monitor's `name` and the input's `label`.
fn monitors(folder: &Path) -> BTreeMap<String, f64> {
    let inputs = |monitor: PathBuf| {
        let chip = fs::read_to_string(monitor.join("name")).unwrap_or_default();
        let number = monitor.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let input = move |path: PathBuf| {
            let input = path.file_name()?.to_str()?.strip_suffix("_input").filter(|name| name.starts_with("temp"))?.to_owned();
            let label = fs::read_to_string(path.with_file_name(format!("{input}_label"))).unwrap_or(input);
            Some((format!("{number} {} {}", chip.trim(), label.trim()), celsius(&path)?))
        };
        entries(&monitor).filter_map(input).collect::<Vec<_>>()
    };
    entries(folder).flat_map(inputs).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn celsius(path: &Path) -> Option<f64> {
    Some(fs::read_to_string(path).ok()?.trim().parse::<f64>().ok()? / MILLIDEGREES_PER_DEGREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn zones_and_monitors_are_named_as_the_kernel_does() {
        let thermal =
            folder_with(&[("thermal_zone0/type", "x86_pkg_temp\n"), ("thermal_zone0/temp", "48500\n"), ("cooling_device0/type", "fan\n")]);
        assert_eq!(zones(thermal.path()), BTreeMap::from([("zone0 x86_pkg_temp".into(), 48.5)]));

        let hwmon = folder_with(&[
            ("hwmon1/name", "coretemp\n"),
            ("hwmon1/temp1_input", "51000\n"),
            ("hwmon1/temp1_label", "Core 0\n"),
            ("hwmon1/temp2_input", "-3250\n"),
            ("hwmon1/temp3_input", "fault\n"),
            ("hwmon1/fan1_input", "900\n"),
        ]);
        let expected = BTreeMap::from([("hwmon1 coretemp Core 0".into(), 51.0), ("hwmon1 coretemp temp2".into(), -3.25)]);
        assert_eq!(monitors(hwmon.path()), expected);
        assert!(zones(&hwmon.path().join("absent")).is_empty());
    }
}
