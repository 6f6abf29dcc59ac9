// What a stranger's program needs: the header and one library.

#include <kernelgen.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    printf("kernelgen %s: %s\n", kg_version(), kg_status_name(KG_OK));
    return strlen(kg_version()) == 0;
}
