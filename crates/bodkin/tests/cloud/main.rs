//! Black-box tests of the whole binary: every test starts the real `bodkin` on ports that the kernel chose and speaks
//! to it over the wire only. What is expected comes from the published Arrowhead 4.6 interface, not from the code.

mod audit;
mod c_server;
mod c_sockets;
mod change_over;
mod commands;
mod conformance;
mod dashboard;
mod dealer;
mod deliveries;
mod demo;
mod documents;
mod events;
mod explanations;
mod faults;
mod graphs;
mod hostile;
mod kill;
mod laboratory;
mod laboratory_realtime;
mod laboratory_secure;
mod options;
mod outage;
mod pages_of_others;
mod pair;
mod pushes;
mod races;
mod real_time;
mod real_time_client;
mod real_time_pushes;
mod replay;
mod secure;
mod stops;
mod support;
mod zmtp;
mod zmtp_ipc;
