/**
 * Entry of the service. Compiled code is kept for the next start: to compile all modules again takes half a
 * second of CPU, while the players of the process before wait.
 */
import { enableCompileCache } from "node:module"
import { fileURLToPath } from "node:url"

// Only the owner of the code can write to this directory. Without it the start just takes longer.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/service", import.meta.url)))

await import("./start.ts")
