//! Apache Flink, from Maven Central: a program of ours with the same graph, in a process of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use nix::unistd::Pid;

use crate::realtime::peer::find;

/// What Flink's own classes need to reach into the JDK's.
const OPENED: [&str; 4] = ["java.base/java.util", "java.base/java.lang", "java.base/java.time", "java.base/java.nio"];

/// The program, built.
#[derive(Debug)]
pub struct FlinkProgram {
    java: PathBuf,
    target: PathBuf,
}

impl FlinkProgram {
    /// Builds it; Maven fetches what is not there.
    ///
    /// # Errors
    /// There is no Java, no Maven, or no way to what it needs.
    pub fn build(sources: &Path) -> anyhow::Result<Self> {
        let (java, maven) = (find("java")?, find("mvn")?);
        ensure!(sources.join("pom.xml").is_file(), "{} has no pom.xml: name the Flink program's sources with --flink", sources.display());
        let built = Command::new(maven).args(["--quiet", "--batch-mode", "package"]).current_dir(sources).stdin(Stdio::null()).output();
        let built = built.context("cannot start mvn")?;
        let told = [built.stdout, built.stderr].concat();
        let first = String::from_utf8_lossy(&told).lines().find(|line| line.contains("ERROR")).map(str::to_owned);
        ensure!(built.status.success(), "mvn package fails: {}", first.unwrap_or_default());
        Ok(Self { java, target: sources.join("target") })
    }

    /// Starts it with so many streams of each level; it connects to the suppliers and to the consumers. Operators of one supplier, and of one consumer, are a task each.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&self, copies: [u32; 3], [suppliers, consumers]: [SocketAddr; 2], cores: u32) -> anyhow::Result<Flink> {
        let class_path = format!("{0}/bodkin-flink.jar:{0}/lib/*", self.target.display());
        let child = Command::new(&self.java)
            .args(OPENED.iter().flat_map(|package| ["--add-opens".to_owned(), format!("{package}=ALL-UNNAMED")]))
            .arg(format!("-XX:ActiveProcessorCount={cores}"))
            .args(["-cp", &class_path, "bodkin.bench.Cpep"])
            .args(copies.map(|copies| copies.to_string()))
            .args([suppliers.port(), consumers.port()].map(|port| port.to_string()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start java")?;
        Ok(Flink { child })
    }
}

/// The running program; killed when dropped.
#[derive(Debug)]
pub struct Flink {
    child: Child,
}

impl Flink {
    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Flink {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
