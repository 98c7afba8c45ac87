/**
 * Sizes of the typed client and of four others in a browser bundle, minified and compressed, by two
 * bundlers: `npm run bench client-sizes`.
 */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { rolldown } from "rolldown"
import { peerClient } from "./servers/peer-packages.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** A client with its entry, a file of the repository or of the packages of the peers. */
interface Measured {
  readonly name: string
  readonly entry: string
}

/** Sizes in bytes of what a page loads at first, compressed with gzip. */
export interface ClientSize {
  readonly name: string
  readonly rolldown: number
  readonly esbuild: number
}

export const ownClients: ReadonlyArray<Measured> = [
  { name: "sign-in and rooms", entry: join(root, "test/support/client/rooms-only.ts") },
  { name: "the whole client", entry: join(root, "src/client/client.ts") },
  { name: "all React hooks, beside it", entry: join(root, "src/client/react/hooks.ts") }
]

const peers = ["socket-io", "nakama", "supabase", "colyseus"]

/** The clients of others, whose packages the first call installs. */
export const peerClients = (): ReadonlyArray<Measured> =>
  peers.map((name) => ({ name, entry: peerClient(`${name}.js`) }))

/** A page has these already. */
const external = ["react"]

const compressed = (code: string | Uint8Array): number => gzipSync(code, { level: 9 }).length

const byRolldown = async (input: string): Promise<number> => {
  const build = await rolldown({ input, external, platform: "browser", logLevel: "silent" })
  const { output } = await build.generate({ minify: true })
  await build.close()
  const [first, ...others] = output
  const imported = others.filter(({ fileName }) => first.imports.includes(fileName))
  const chunks = [first, ...imported].flatMap((file) => (file.type === "chunk" ? [file.code] : []))
  return chunks.reduce((total, code) => total + compressed(code), 0)
}

/** The part of esbuild that this program uses. Its package is one of the peers'. */
interface Esbuild {
  build(options: Readonly<Record<string, unknown>>): Promise<{
    readonly outputFiles: ReadonlyArray<{ readonly path: string; readonly contents: Uint8Array }>
    readonly metafile: {
      readonly outputs: Readonly<
        Record<
          string,
          {
            readonly entryPoint?: string
            readonly imports: ReadonlyArray<{ readonly path: string; readonly kind: string }>
          }
        >
      >
    }
  }>
}

/** Loads esbuild from the packages of the peers. */
export const loadEsbuild = async (): Promise<Esbuild> =>
  import(peerClient("node_modules/esbuild/lib/main.js"))

const byEsbuild = async (input: string): Promise<number> => {
  const { build } = await loadEsbuild()
  const { metafile, outputFiles } = await build({
    entryPoints: [input],
    absWorkingDir: root,
    bundle: true,
    external,
    minify: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    outdir: "dist",
    metafile: true,
    write: false,
    logLevel: "silent"
  })
  const outputs = Object.entries(metafile.outputs)
  const entry = outputs.find(([, { entryPoint }]) => entryPoint !== undefined)
  if (entry === undefined) throw new Error(`esbuild wrote no entry for ${input}`)
  const [path, { imports }] = entry
  const first = [path, ...imports.flatMap((it) => (it.kind === "import-statement" ? it.path : []))]
  return outputFiles
    .filter((file) => first.some((name) => file.path.endsWith(name)))
    .reduce((total, { contents }) => total + compressed(contents), 0)
}

/** Measures one client after the other. */
export const measureClients = async (
  clients: ReadonlyArray<Measured>
): Promise<ReadonlyArray<ClientSize>> => {
  const sizes: Array<ClientSize> = []
  for (const { entry, name } of clients) {
    sizes.push({ name, rolldown: await byRolldown(entry), esbuild: await byEsbuild(entry) })
  }
  return sizes
}

const kib = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`

/** The sizes as a table in Markdown. */
export const sizeTable = (sizes: ReadonlyArray<ClientSize>): string =>
  [
    "| client | rolldown (Vite) | esbuild |",
    "| --- | ---: | ---: |",
    ...sizes.map(
      ({ esbuild, name, rolldown: bytes }) => `| ${name} | ${kib(bytes)} | ${kib(esbuild)} |`
    )
  ].join("\n")

if (import.meta.main) {
  const sizes = await measureClients([...ownClients, ...peerClients()])
  process.stdout.write(`${sizeTable(sizes)}\n`)
}
