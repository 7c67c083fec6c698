/** lwIP as a board without an operating system has it: the raw API alone. all_lwip.sh reads the port with it. */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS 1
#define LWIP_SOCKET 0
#define LWIP_NETCONN 0
#define LWIP_IPV6 1

#endif
