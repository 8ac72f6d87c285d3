/* The extension module `ptaskmodel._kernels`: where the machine code of each kernel is.
 *
 * `addresses` maps the name of a kernel for one kind of arguments to the address of its function, for
 * the best level of this processor; `level` names that. table.h is written by `building.py`: LEVELS,
 * KERNELS, and the stamps of the sources, `stamps` here too, so that every linker keeps them. Of Python it
 * needs what is declared here, no headers: all of it is in the stable interface since 3.11.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "table.h"

typedef struct Object Object;
typedef struct { ptrdiff_t references; Object *type; Object *(*init)(void); ptrdiff_t index; Object *copy; } Base;
typedef struct { int slot; void *value; } Slot;
typedef struct {
    Base base;
    const char *name, *doc;
    ptrdiff_t size;
    void *methods;
    Slot *slots;
    void *traverse, *clear, *release;
} Definition;
enum { EXEC = 2 };

extern Object *PyModuleDef_Init(Definition *);
extern int PyModule_AddStringConstant(Object *, const char *, const char *);
extern int PyModule_AddObjectRef(Object *, const char *, Object *);
extern Object *PyDict_New(void);
extern int PyDict_SetItemString(Object *, const char *, Object *);
extern Object *PyLong_FromVoidPtr(void *);
extern void Py_DecRef(Object *);
extern void PyErr_SetString(Object *, const char *);
extern Object *PyExc_ImportError;

typedef struct { const char *name; const void *address; } Kernel;

#define X(name, level) extern const char name##_##level[];
#define Y(level) KERNELS(level)
LEVELS
#undef X
#undef Y
#define X(name, level) {#name, name##_##level},
#define Y(level) static const Kernel of_##level[] = {KERNELS(level) {NULL, NULL}};
LEVELS
#undef X
#undef Y

/* The kernels that allocate ask this of numba's runtime. */
typedef struct { size_t references; void *destroy, *about, *data; size_t size; void *allocator; } Memory;
enum { HEAD = (sizeof(Memory) + 63) / 64 * 64 };

void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t align)
{
    char *room = malloc(HEAD + size + align), *data;
    if (!room) return NULL;
    data = room + HEAD + (align - (uintptr_t)(room + HEAD) % align) % align;
    *(Memory *)room = (Memory){1, NULL, NULL, data, size, NULL};
    return room;
}

void NRT_MemInfo_call_dtor(void *memory) { free(memory); }

#if defined HAS_v2 || defined HAS_v3
#include <cpuid.h>

/* Whether the processor has all of some features: words c of leaf 1 and b of leaf 7, as in cpuid.h. Not
 * __builtin_cpu_supports: the one of ziglang always says no. */
static int has(unsigned first, unsigned seventh)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & first) == first
        && (!seventh || (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & seventh) == seventh));
}

/* Whether the system keeps registers of 256 bits. */
static int keeps_wide(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 6) == 6;
}
#endif

static const Kernel *best(const char **level)
{
    const char *asked = getenv("PTASKMODEL_PROCESSOR");
    (void)asked;
#ifdef HAS_v3 /* and what no processor with these lacks: F16C, LZCNT, MOVBE */
    if ((!asked || strcmp(asked, "v2")) && has(bit_FMA | bit_OSXSAVE, bit_AVX2 | bit_BMI | bit_BMI2)
            && keeps_wide())
        return *level = "v3", of_v3;
#endif
#ifdef HAS_v2
    if (has(bit_SSE4_2 | bit_POPCNT, 0)) return *level = "v2", of_v2;
#endif
#ifdef HAS_v0
    return *level = "v0", of_v0;
#endif
    return NULL;
}

static int fill(Object *module)
{
    const char *level = NULL;
    const Kernel *kernel = best(&level);
    Object *addresses;
    int failed;
    if (!kernel) {
        PyErr_SetString(PyExc_ImportError, "made for another processor");
        return -1;
    }
    if (!(addresses = PyDict_New())) return -1;
    for (failed = 0; !failed && kernel->name; kernel++) {
        Object *address = PyLong_FromVoidPtr((void *)kernel->address);
        failed = !address || PyDict_SetItemString(addresses, kernel->name, address);
        if (address) Py_DecRef(address);
    }
    failed = failed || PyModule_AddStringConstant(module, "level", level)
        || PyModule_AddStringConstant(module, "compiler", COMPILER)
        || PyModule_AddStringConstant(module, "stamps", STAMPS)
        || PyModule_AddObjectRef(module, "addresses", addresses);
    Py_DecRef(addresses);
    return failed ? -1 : 0;
}

static Slot slots[] = {{EXEC, (void *)fill}, {0, NULL}};
static Definition definition = {{1, NULL, NULL, 0, NULL}, "_kernels", NULL, 0, NULL, slots, NULL, NULL, NULL};
__attribute__((visibility("default"))) Object *PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
