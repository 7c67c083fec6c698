/* Where a Cortex-M3 begins: newlib's start, whose input and output are the debugger's (semihosting). A fault ends the program with a status. */

#include <stdint.h>

#define EXIT 0x18
#define RUN_TIME_ERROR 0x20023

extern uint32_t __stack;
void _start(void);

static void fault(void)
{
    register uint32_t operation __asm__("r0") = EXIT;
    register uint32_t reason __asm__("r1") = RUN_TIME_ERROR;
    __asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(reason));
}

/** The stack, and whom to call at reset, NMI, and the four faults. */
static const struct {
    uint32_t *stack;
    void (*handlers[6])(void);
} VECTORS __attribute__((section(".vectors"), used)) = {&__stack, {_start, fault, fault, fault, fault, fault}};
