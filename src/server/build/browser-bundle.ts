/**
 * Bundles the dashboard and the client into one file: `node src/server/build/browser-bundle.ts <file>`. The
 * service runs it in a process of its own, so that the bundler's memory and time are not the service's.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { createHash } from "node:crypto"
import { gzipSync } from "node:zlib"
import { rolldown } from "rolldown"
import { type BundleContent, type BundledFile, sourceHash } from "../http/browser-bundle/sources.ts"
import { clientBundle, refuseMissing } from "./client-bundle.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const styles = ["tokens.css", "base.css", "parts.css", "views.css"]

const compressed = (type: string, text: string): BundledFile => ({
  type,
  gzip: gzipSync(text, { level: 9 }).toString("base64")
})

const hashed = (name: string, text: string): string => {
  const [stem = name, extension = ""] = name.split(".")
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8)
  return `${stem}-${hash}.${extension}`
}

const scripts = async (): Promise<ReadonlyMap<string, string>> => {
  const build = await rolldown({
    input: { main: "src/dashboard/main.tsx" },
    cwd: root,
    platform: "browser",
    transform: { jsx: { runtime: "automatic", importSource: "preact" } },
    // The editor's JSON service is published as UMD beside ESM; the bundler must take the latter.
    resolve: { mainFields: ["browser", "module", "main"] },
    onLog: refuseMissing
  })
  const { output } = await build.generate({
    format: "esm",
    minify: true,
    entryFileNames: "[name]-[hash].js",
    chunkFileNames: "[name]-[hash].js"
  })
  await build.close()
  return new Map(
    output.flatMap((chunk) => (chunk.type === "chunk" ? [[chunk.fileName, chunk.code]] : []))
  )
}

const dashboard = async (): Promise<BundleContent["dashboard"]> => {
  const read = (name: string) => readFileSync(join(root, "src/dashboard", name), "utf8")
  const code = await scripts()
  const style = styles.map((name) => read(`style/${name}`)).join("\n")
  const theme = read("theme.js")
  const icon = read("icon.svg")
  const names = {
    main: Array.from(code.keys()).find((name) => name.startsWith("main-")) ?? "",
    style: hashed("style.css", style),
    theme: hashed("theme.js", theme),
    icon: hashed("icon.svg", icon)
  }
  const files = new Map([
    ...Array.from(
      code,
      ([name, text]) => [name, compressed("text/javascript; charset=utf-8", text)] as const
    ),
    [names.style, compressed("text/css; charset=utf-8", style)],
    [names.theme, compressed("text/javascript; charset=utf-8", theme)],
    [names.icon, compressed("image/svg+xml; charset=utf-8", icon)]
  ])
  return { names, files: Object.fromEntries(files) }
}

const bundle = async (): Promise<BundleContent> => {
  const client = await clientBundle()
  return {
    hash: (await sourceHash()) ?? "",
    client: {
      code: compressed("text/javascript; charset=utf-8", client.code),
      map: compressed("application/json", client.map)
    },
    dashboard: await dashboard()
  }
}

const target = process.argv[2] ?? join(root, "dist/browser.json")
const unfinished = `${target}.${process.pid}`
mkdirSync(dirname(target), { recursive: true })
writeFileSync(unfinished, JSON.stringify(await bundle()))
renameSync(unfinished, target)
