/** The client as one minified module with its source map, for pages without a bundler. */
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Returns the content of `src/server/http/sdk/bundle.json`. */
export const clientBundleText = async (): Promise<string> => {
  const build = await rolldown({ input: "src/client/client.ts", cwd: root, platform: "browser" })
  const { output } = await build.generate({
    file: "client.js",
    format: "esm",
    codeSplitting: false,
    minify: true,
    sourcemap: true
  })
  await build.close()
  const [{ code, map }] = output
  return `${JSON.stringify({ code, map: map?.toString() ?? "" }, null, 2)}\n`
}
