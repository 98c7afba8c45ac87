/**
 * Builds the npm packages for games into `dist/packages`: `npm run packages`. The client is bundled into
 * one file for each entry. The service, the CLI and the test kit keep their files, since they read
 * migrations and start processes by path.
 */
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { type LogLevel, type LogOrStringHandler, rolldown, type RolldownLog } from "rolldown"
import manifest from "../../../package.json" with { type: "json" }
import { type GamePackage, packages, scope } from "./package-list.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const target = join(root, "dist/packages")
const declarations = join(target, "types")

/** Programs that build this repository, and no part of the service. */
const tools = /^src\/server\/build\//

const run = (program: string, ...words: ReadonlyArray<string>): string =>
  execFileSync(program, words, { cwd: root, encoding: "utf8" }).trim()

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

const isIn = (file: string, folders: ReadonlyArray<string>): boolean =>
  folders.some((folder) => file.startsWith(`${folder}/`))

const aliases: Readonly<Record<string, string>> = manifest.imports

/** The file of the repository that a module imports; undefined for an installed package. */
const imported = (specifier: string, importer: string): string | undefined => {
  if (specifier.startsWith(".")) return join(dirname(importer), specifier)
  if (!specifier.startsWith("#")) return undefined
  const slash = specifier.indexOf("/")
  const pattern = aliases[`${specifier.slice(0, slash)}/*`]
  return pattern?.slice("./".length).replace("*", specifier.slice(slash + 1))
}

/** The entry of another package that has this file; undefined if the package itself has it. */
const foreignEntry = (pkg: GamePackage, file: string): string | undefined => {
  if (isIn(file, pkg.folders) || !file.endsWith(".ts")) return undefined
  if (isIn(file, ["src/client"])) return `${scope}/client`
  return `${scope}/server/internal/${file.slice(0, -".ts".length)}`
}

/** Names the modules of other packages, and leaves the installed ones to npm. */
const externals = (pkg: GamePackage) => ({
  name: "externals",
  resolveId: (specifier: string, importer: string | undefined) => {
    if (importer === undefined) return null
    const file = imported(specifier, relative(root, importer))
    if (file === undefined) return { id: specifier, external: true }
    const id = foreignEntry(pkg, file)
    return id === undefined ? null : { id, external: true }
  }
})

/** The modules of a package that keeps its files. */
const modulesOf = ({ folders }: GamePackage): Readonly<Record<string, string>> =>
  Object.fromEntries(
    folders
      .flatMap((folder) => filesIn(join(root, folder)))
      .map((file) => relative(root, file))
      .filter((file) => file.endsWith(".ts") && !tools.test(file))
      .map((file) => [file.slice(0, -".ts".length), file])
  )

/** The entries of a package with a CommonJS variant that have one. */
const entriesWithCommonJs = ({ entries = {}, exports }: GamePackage) =>
  Object.fromEntries(
    Object.entries(entries).filter(([name]) =>
      Object.values(exports).some((entry) => JSON.stringify(entry).includes(`./cjs/${name}.js`))
    )
  )

/** Rolldown keeps the directives of entries, and warns that it may not. */
const onLog = (level: LogLevel, log: RolldownLog, handle: LogOrStringHandler): void => {
  if (log.code !== "MODULE_LEVEL_DIRECTIVE") handle(level, log)
}

/** Writes the entries of a package as CommonJS, in a folder that says so. */
const bundleCommonJs = async (pkg: GamePackage, folder: string): Promise<void> => {
  const build = await rolldown({
    input: entriesWithCommonJs(pkg),
    cwd: root,
    platform: "browser",
    plugins: [externals(pkg)],
    onLog
  })
  const chunkFileNames = "[name]-[hash].js"
  const names = { entryFileNames: "[name].js", chunkFileNames }
  await build.write({ dir: join(folder, "cjs"), format: "cjs", sourcemap: true, ...names })
  await build.close()
  writeFileSync(join(folder, "cjs/package.json"), `${JSON.stringify({ type: "commonjs" })}\n`)
}

/** Writes the JavaScript of a package and returns the modules that it imports from others. */
const bundle = async (pkg: GamePackage, folder: string): Promise<ReadonlySet<string>> => {
  const build = await rolldown({
    input: pkg.entries ?? modulesOf(pkg),
    cwd: root,
    platform: pkg.entries === undefined ? "node" : "browser",
    plugins: [externals(pkg)],
    onLog
  })
  const { output } = await build.write({
    dir: folder,
    format: "esm",
    sourcemap: true,
    entryFileNames: "[name].js",
    ...(pkg.entries === undefined ? { preserveModules: true, preserveModulesRoot: root } : {})
  })
  await build.close()
  if (pkg.isDual === true) await bundleCommonJs(pkg, folder)
  const own = new Set(output.map(({ fileName }) => fileName))
  const all = output.flatMap((chunk) =>
    chunk.type === "chunk" ? [...chunk.imports, ...chunk.dynamicImports] : []
  )
  return new Set(all.filter((specifier) => !own.has(specifier)))
}

/** Style sheets, scripts and pages that modules read from beside them. */
const assetsOf = ({ entries, folders }: GamePackage): ReadonlyArray<string> =>
  entries === undefined
    ? folders
        .flatMap((folder) => filesIn(join(root, folder)))
        .map((file) => relative(root, file))
        .filter((file) => /\.(?:css|html|js|svg)$/.test(file))
    : []

/** Modules find files beside them by path. */
const renamePaths = (folder: string): void => {
  for (const file of filesIn(folder).filter((path) => path.endsWith(".js"))) {
    const text = readFileSync(file, "utf8")
    const renamed = text
      .replaceAll(
        /new URL\("(?:\.\.\/)+server\/(?:(backup|operator)\/)?main\.ts", import\.meta\.url\)/g,
        (_, program: string = "main") => `import.meta.resolve("${scope}/server/${program}")`
      )
      .replaceAll(/(new URL\("[^"]+)\.ts(", import\.meta\.url\))/g, "$1.js$2")
    if (renamed !== text) writeFileSync(file, renamed)
  }
}

const specifiers = /((?:from |import ?\(?)")([#.][^"]+)(")/g

/** The declarations of a module. */
const declarationOf = (module: string): string => module.replace(/\.ts$/, ".d.ts")

/** The declarations of these modules and of all that they import. */
const reachable = (pkg: GamePackage, modules: ReadonlyArray<string>): ReadonlySet<string> => {
  const found = new Set<string>()
  const visit = (module: string): void => {
    const path = declarationOf(module)
    if (found.has(path) || !isIn(path, pkg.declarations)) return
    found.add(path)
    const text = readFileSync(join(declarations, path), "utf8")
    for (const [, , specifier = ""] of text.matchAll(specifiers)) {
      const file = imported(specifier, path)
      if (file?.endsWith(".ts") === true) visit(file)
    }
  }
  for (const module of modules) visit(module)
  return found
}

/** The declarations of a package that keeps its files. */
const declarationsOf = ({ declarations: folders }: GamePackage): ReadonlyArray<string> =>
  filesIn(declarations)
    .map((file) => relative(declarations, file))
    .filter((file) => isIn(file, folders))

/** Copies declarations into a folder of a package, with the specifiers of JavaScript. */
const copyDeclarations = (pkg: GamePackage, paths: Iterable<string>, folder: string): void => {
  for (const path of paths) {
    const text = readFileSync(join(declarations, path), "utf8")
    const renamed = text.replaceAll(
      specifiers,
      (_, before: string, specifier: string, after: string) =>
        `${before}${declaredAs(pkg, path, specifier)}${after}`
    )
    const copy = join(folder, "types", path)
    mkdirSync(dirname(copy), { recursive: true })
    writeFileSync(copy, renamed)
  }
}

const writeDeclarations = (pkg: GamePackage, folder: string): void => {
  if (pkg.entries === undefined) return copyDeclarations(pkg, declarationsOf(pkg), folder)
  copyDeclarations(pkg, reachable(pkg, Object.values(pkg.entries)), folder)
  if (pkg.isDual !== true) return
  const dual = reachable(pkg, Object.values(entriesWithCommonJs(pkg)))
  copyDeclarations(pkg, dual, join(folder, "cjs"))
}

const declaredAs = (pkg: GamePackage, importer: string, specifier: string): string => {
  const file = imported(specifier, importer)
  if (file === undefined || !file.endsWith(".ts")) return specifier
  const foreign = foreignEntry(pkg, file)
  if (foreign !== undefined) return foreign
  const path = relative(dirname(importer), file).replace(/\.ts$/, ".js")
  return path.startsWith(".") ? path : `./${path}`
}

const pinned: Readonly<Record<string, string>> = manifest.dependencies

/** What the service does without, but a command of the CLI loads. */
const loaded: Readonly<Record<string, string>> = manifest.devDependencies

/** The packages that the modules import, in the versions that the repository pins. */
const dependenciesOf = (pkg: GamePackage, imports: ReadonlySet<string>) => {
  const names = Array.from(imports, (specifier) =>
    specifier
      .split("/")
      .slice(0, specifier.startsWith("@") ? 2 : 1)
      .join("/")
  )
  // The game brings its own Node.
  const programs = pkg.needsPrograms ? Object.keys(pinned).filter((name) => name !== "node") : []
  const versions = Array.from(new Set([...names, ...programs])).flatMap((name) => {
    const known = pkg.ranges?.[name] ?? pinned[name] ?? loaded[name]
    const version = name.startsWith(`${scope}/`) ? manifest.version : known
    return version === undefined ? [] : [[name, version] as const]
  })
  const isPeer = ([name]: readonly [string, string]) => pkg.peers?.includes(name) === true
  const sorted = versions.toSorted(([a], [b]) => a.localeCompare(b))
  return {
    dependencies: Object.fromEntries(sorted.filter((entry) => !isPeer(entry))),
    peerDependencies: Object.fromEntries(sorted.filter(isPeer)),
    peerDependenciesMeta: Object.fromEntries(
      (pkg.peers ?? []).map((name) => [name, { optional: true }])
    )
  }
}

/** The file of a program, in a format that old versions of Node read. */
const programOf = (name: string): string => `bin/${name}.cjs`

const binOf = (programs: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.keys(programs).map((name) => [name, `./${programOf(name)}`]))

/** The page of the repository on its host, if a remote named `origin` says where that is. */
const pageOf = (remote: string): string | undefined => {
  const [, host, path] =
    /^(?:https:\/\/|(?:ssh:\/\/)?git@)([\w.-]+)[/:](.+?)(?:\.git)?$/.exec(remote) ?? []
  return host === undefined ? undefined : `https://${host}/${path}`
}

/** Where the source of a package is. */
const sourceOf = (pkg: GamePackage) => {
  const page = pageOf(run("git", "config", "--default", "", "--get", "remote.origin.url"))
  if (page === undefined) return {}
  return {
    homepage: `${page}#readme`,
    repository: { type: "git", url: `git+${page}.git`, directory: pkg.folders[0] },
    bugs: { url: `${page}/issues` }
  }
}

const writeManifest = (pkg: GamePackage, folder: string, imports: ReadonlySet<string>): void => {
  const { license, version } = manifest
  const content = {
    name: `${scope}/${pkg.name}`,
    version,
    description: pkg.description,
    keywords: pkg.keywords,
    license,
    ...sourceOf(pkg),
    type: "module",
    sideEffects: pkg.sideEffects ?? false,
    publishConfig: { access: "public" },
    engines: { node: pkg.node },
    gitHead: run("git", "rev-parse", "HEAD"),
    ...(pkg.programs === undefined ? {} : { bin: binOf(pkg.programs) }),
    exports: pkg.exports,
    ...pkg.manifest,
    ...dependenciesOf(pkg, imports)
  }
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(content, null, 2)}\n`)
}

/**
 * Writes the programs of a package. Each checks the version of Node before it loads a module: an older one
 * fails to import what it does not have, with an error that names neither.
 */
const writePrograms = ({ node, programs = {} }: GamePackage, folder: string): void => {
  if (Object.keys(programs).length > 0) mkdirSync(join(folder, "bin"))
  const [major = 0, minor = 0] = node.replace(">=", "").split(".").map(Number)
  for (const [name, path] of Object.entries(programs)) {
    const file = join(folder, programOf(name))
    const lines = [
      "#!/usr/bin/env node",
      `var version = process.versions.node.split(".").map(Number)`,
      `if (version[0] > ${major} || (version[0] === ${major} && version[1] >= ${minor})) {`,
      `  import("../${path}")`,
      "} else {",
      `  console.error("${name} needs Node ${major}.${minor} or newer, and this is " + process.versions.node + ".")`,
      `  console.error("Install a newer one, from https://nodejs.org for example, and run this again.")`,
      "  process.exitCode = 1",
      "}"
    ]
    writeFileSync(file, `${lines.join("\n")}\n`)
    chmodSync(file, 0o755)
  }
}

const build = async (pkg: GamePackage): Promise<string> => {
  const folder = join(target, pkg.name)
  const imports = await bundle(pkg, folder)
  renamePaths(folder)
  writePrograms(pkg, folder)
  writeDeclarations(pkg, folder)
  for (const path of ["LICENSE", ...assetsOf(pkg), ...(pkg.files ?? [])]) {
    cpSync(join(root, path), join(folder, path), { recursive: true })
  }
  if (pkg.needsPrograms) {
    run(process.execPath, "src/server/build/browser-bundle.ts", join(folder, "dist/browser.json"))
  }
  cpSync(join(root, `docs/packages/${pkg.name}.md`), join(folder, "README.md"))
  writeManifest(pkg, folder, imports)
  return run("npm", "pack", folder, "--pack-destination", target, "--silent")
}

/** Says what happens next. */
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const types = (): void => {
  // `npm run check` checks the types; this only writes them. Several checkers would infer the same types.
  const options = ["--outDir", declarations, "--noCheck", "--checkers", "1"]
  run("npx", "tsc", "--project", "tsconfig.packages.json", ...options)
}

rmSync(target, { recursive: true, force: true })
say("Declarations of all packages, which takes the compiler half a minute or more")
types()
for (const pkg of packages) {
  say(`${scope}/${pkg.name}`)
  say(`  ${join("dist/packages", await build(pkg))}`)
}
rmSync(declarations, { recursive: true })
if (pageOf(run("git", "config", "--default", "", "--get", "remote.origin.url")) === undefined) {
  say(
    "The manifests do not say where the source is: there is no remote named origin on a web host."
  )
}
