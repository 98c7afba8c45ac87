/**
 * Entry of the service. Compiled code is kept for the next start: to compile all modules again takes half a
 * second of CPU, while the players of the process before wait.
 */
import { enableCompileCache } from "node:module"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"

// Contexts of layers live long, so V8 would allocate those of requests in the old generation, too. All that
// they refer to, requests and responses, would then survive until a full collection. Compiled code depends on
// flags, so this comes first.
setFlagsFromString("--no-allocation-site-pretenuring")

// Only the owner of the code can write to this directory. Without it the start just takes longer.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/service", import.meta.url)))

await import("./start.ts")
