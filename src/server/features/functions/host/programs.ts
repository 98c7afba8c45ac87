/** Programs of an environment: that of its live version, and the one that runs none of its code. */
import { Redacted } from "effect"
import type { FunctionProgram } from "../program.ts"

const stores = new Set(["db", "kv", "files"])

/**
 * Program with the stored data but none of the code. The service can run statements in it while the
 * code may not run. No developer can give a module its name.
 */
export const withoutCode = (program: FunctionProgram): FunctionProgram => ({
  ...program,
  mainModule: "svc-no-code.js",
  modules: [{ name: "svc-no-code.js", type: "esm", content: Buffer.from("export default {}") }],
  bindings: program.bindings.filter(({ type }) => stores.has(type)),
  secrets: {}
})

export const hasStorage = ({ bindings }: FunctionProgram): boolean =>
  bindings.some(({ type }) => stores.has(type))

/** Whether two programs run in the same way, so that a running process can stay. */
export const isSame = (a: FunctionProgram, b: FunctionProgram): boolean => {
  const keyOf = ({ limits, mainModule, secrets, version }: FunctionProgram) =>
    JSON.stringify([
      version,
      mainModule,
      limits,
      Object.entries(secrets).map(([name, secret]) => [name, Redacted.value(secret)])
    ])
  return keyOf(a) === keyOf(b)
}
