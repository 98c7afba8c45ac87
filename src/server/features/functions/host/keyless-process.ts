/**
 * Process that finds values without a key, or removes them, for the service that forked it: many files
 * would delay calls there. It sends their bytes.
 */
import { rmSync } from "node:fs"
import { constants, setPriority } from "node:os"
import { keylessValues } from "./keyless-values.ts"

// Players come first.
setPriority(constants.priority.PRIORITY_LOW)

const [data = "", action, writtenBefore] = process.argv.slice(2)
const values = keylessValues(data, Number(writtenBefore))
if (action === "remove") for (const { file } of values) rmSync(file, { force: true })
process.send?.(values.reduce((sum, { bytes }) => sum + bytes, 0))
