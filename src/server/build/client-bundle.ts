/** The client as one minified module with its source map, for pages without a bundler. */
import { fileURLToPath } from "node:url"
import { type LogLevel, rolldown, type RolldownLog } from "rolldown"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Fails for a module that is missing. The bundler would leave its import to the browser, which has none. */
export const refuseMissing = (_level: LogLevel, log: RolldownLog): void => {
  if (log.code === "UNRESOLVED_IMPORT") throw new Error(log.message)
}

export const clientBundle = async () => {
  const build = await rolldown({
    input: "src/client/client.ts",
    cwd: root,
    platform: "browser",
    onLog: refuseMissing
  })
  const { output } = await build.generate({
    file: "client.js",
    format: "esm",
    codeSplitting: false,
    minify: true,
    sourcemap: true
  })
  await build.close()
  const [{ code, map }] = output
  return { code, map: map?.toString() ?? "" }
}
