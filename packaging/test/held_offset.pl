#!/usr/bin/perl
# Prints a port offset at which all standard ports are free, and holds them until its standard input ends: sockets that are bound and do not listen, so that nobody else is given
# the ports, and whoever is told them listens there (both have SO_REUSEADDR). As tests do it in Rust (crates/bench/src/ports.rs); a shell cannot bind, and every Debian has perl-base.
use strict;
use warnings;
use Socket;

my @ports = (5570, 5571, 5572, 5573, 8440, 8441, 8443, 8445, 8449, 8450, 8453, 8455);
# Every port stays below those that the system chooses from (32768 on); a step is farther than the standard ports are apart.
my ($first, $places, $step) = (12_000, 600, 20);

sub hold {
    my ($port) = @_;
    socket(my $held, PF_INET, SOCK_STREAM, 0) or die "no socket: $!\n";
    bind($held, sockaddr_in($port, INADDR_LOOPBACK)) or return;
    # Behind the binding: in front of it, two would hold the same port.
    setsockopt($held, SOL_SOCKET, SO_REUSEADDR, 1) or die "no SO_REUSEADDR: $!\n";
    return $held;
}

for my $turn (0 .. $places - 1) {
    my $offset = $first + $step * (($$ + $turn) % $places);
    my @held = map { hold($_ + $offset) } @ports;
    next if @held < @ports;
    $| = 1;
    print "$offset\n";
    # Whoever has asked goes on; the ports are held until then.
    1 while <STDIN>;
    exit 0;
}
die "no offset has all standard ports free\n";
