// The table of targets and the families of each.

#include "gen/families.h"
#include "gen/target.h"
#include "test.h"

static const struct kg_target *const targets[] = {&kg_target_host, &kg_target_cuda,
                                                  &kg_target_triton};
enum { TARGETS = sizeof targets / sizeof *targets };

static void targets_have_names(void)
{
    for (int i = 0; i < TARGETS; i++)
        CHECK(kg_target_find(targets[i]->name) == targets[i]);
    static const char *const unknown[] = {"", "Host", "cuda ", "cud", "opencl"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        CHECK(kg_target_find(unknown[i]) == NULL);
}

static void devices_have_targets(void)
{
    for (int i = 0; i < TARGETS; i++) {
        CHECK(targets[i]->only_emits == (targets[i] == &kg_target_triton));
        if (targets[i]->only_emits)
            continue;
        const struct kg_backend backend = {.name = targets[i]->name};
        const struct kg_device device = {.backend = &backend};
        CHECK(kg_target_of(&device) == targets[i]);
    }
}

// Names are part of choices as text: ":" ends them, "*" counts nests, ";" separates groups.
static void families_have_names(void)
{
    for (int i = 0; i < TARGETS; i++) {
        bool has_plain = false;
        for (const struct kg_family *const *family = targets[i]->families; *family; family++) {
            CHECK(kg_target_family(targets[i], (*family)->name) == *family); // and no other
            CHECK(strcspn((*family)->name, " :*;=") == strlen((*family)->name));
            has_plain |= *family == targets[i]->plain;
        }
        CHECK(has_plain);
        CHECK(kg_target_family(targets[i], "nonsense") == NULL);
        CHECK(kg_target_family(targets[i], "") == NULL);
    }
    CHECK(kg_target_family(&kg_target_cuda, "contract/wgmma") == &kg_cuda_contract_wgmma);
    CHECK(kg_target_family(&kg_target_cuda, "contract") == NULL); // a form has to be named
    CHECK(kg_target_family(&kg_target_host, "contract") == &kg_host_contract);
    CHECK(kg_target_family(&kg_target_host, "contract/wgmma") == NULL);
}

TEST_MAIN(targets_have_names, devices_have_targets, families_have_names)
