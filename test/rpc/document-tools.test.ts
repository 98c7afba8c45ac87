/**
 * Foreign tools on the documents of the API: clients that `openapi-typescript` and `@hey-api/openapi-ts`
 * generate compile and sign a guest in at the real service; AsyncAPI's parser accepts the document of the
 * socket. The tools are a package of their own, which the first run installs.
 * @module-tag long
 */
import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { asyncapiText } from "#server/http/asyncapi"
import { openapiText } from "#server/http/openapi"
import { at } from "#testing/players"
import { nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { newGame } from "../support/players.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const tools = join(import.meta.dirname, "client-generators")
const root = join(import.meta.dirname, "../..")
const run = promisify(execFile)

/** Runs a program of the tools, or Node; the error shows its output. */
const exec = (file: string, args: ReadonlyArray<string>, cwd: string): Promise<string> =>
  run(file, args, { cwd }).then(
    ({ stdout }) => stdout,
    (error) => Promise.reject(new Error(`${file} failed: ${error.stdout}${error.stderr}`))
  )

const install = async () => {
  if (existsSync(join(tools, "node_modules"))) return
  await exec("npm", ["ci", "--prefer-offline", "--no-audit", "--no-fund"], tools)
}

/** A folder in which a program finds the packages of the generators. The scope removes it. */
const projectFolder = Effect.acquireRelease(
  Effect.promise(async () => {
    await install()
    const folder = await mkdtemp(join(tmpdir(), "generated-client-"))
    await symlink(join(tools, "node_modules"), join(folder, "node_modules"))
    await writeFile(join(folder, "package.json"), `{ "type": "module" }`)
    await writeFile(join(folder, "openapi.json"), openapiText())
    return folder
  }),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
)

const tsconfig = JSON.stringify({
  compilerOptions: {
    strict: true,
    noUncheckedIndexedAccess: true,
    module: "nodenext",
    target: "es2023",
    lib: ["es2023", "dom", "dom.iterable"],
    types: [],
    outDir: "out"
  },
  files: ["program.ts"]
})

/** Compiles the program with the generated client, runs it and returns what it prints. */
const compileAndRun = async (folder: string, program: string, args: ReadonlyArray<string>) => {
  await writeFile(join(folder, "program.ts"), program)
  await writeFile(join(folder, "tsconfig.json"), tsconfig)
  const compiler = join(root, "node_modules/typescript/bin/tsc")
  await exec("node", [compiler], folder)
  const printed: unknown = JSON.parse(
    await exec("node", [join("out", "program.js"), ...args], folder)
  )
  return printed
}

const programs = {
  "openapi-typescript": {
    generator: ["openapi-typescript", "openapi.json", "-o", "schema.d.ts"],
    program: `
import createClient from "openapi-fetch"
import type { paths } from "./schema.js"
declare const process: { argv: [string, string, string, string] }
const [, , baseUrl, key] = process.argv
const client = createClient<paths>({ baseUrl, headers: { "X-Svc-Key": key } })
const { data, error } = await client.POST("/v1/auth/guest", { body: { displayName: "Ada" } })
if (error !== undefined) throw new Error(error.error.code)
const me = await client.GET("/v1/players/me", {
  headers: { authorization: \`Bearer \${data.accessToken}\` }
})
const name: string | undefined = me.data?.player.displayName
console.log(JSON.stringify({ name }))`
  },
  "@hey-api/openapi-ts": {
    generator: ["openapi-ts", "-i", "openapi.json", "-o", "client", "-s"],
    program: `
import { client } from "./client/client.gen.js"
import { playersMe, sessionsGuest } from "./client/sdk.gen.js"
declare const process: { argv: [string, string, string, string] }
const [, , baseUrl, key] = process.argv
client.setConfig({ baseUrl, auth: () => key })
const { data } = await sessionsGuest({ body: { displayName: "Ada" }, throwOnError: true })
const me = await playersMe({
  auth: (scheme) => (scheme.scheme === "bearer" ? data.accessToken : key),
  throwOnError: true
})
const name: string = me.data.player.displayName
console.log(JSON.stringify({ name }))`
  }
} as const

/** Prints the diagnostics of AsyncAPI's parser. */
const parse = `
import { readFile } from "node:fs/promises"
import { Parser } from "@asyncapi/parser"
const { diagnostics } = await new Parser().parse(await readFile("asyncapi.json", "utf8"))
console.log(JSON.stringify(diagnostics.map(({ message, path }) => [message, path.join(".")])))`

layer(Node)("the documents of the API under foreign tools", (it) => {
  it.effect("parses the AsyncAPI document by a foreign tool without a remark", () =>
    Effect.gen(function* () {
      const folder = yield* projectFolder
      const diagnostics = yield* Effect.promise(async () => {
        await writeFile(join(folder, "asyncapi.json"), asyncapiText())
        await writeFile(join(folder, "parse.js"), parse)
        const printed: unknown = JSON.parse(await exec("node", ["parse.js"], folder))
        return printed
      })
      assert.deepStrictEqual(diagnostics, [])
    })
  )

  for (const [name, { generator, program }] of Object.entries(programs)) {
    it.effect(
      `generates from the OpenAPI document a client that compiles and signs a guest in: ${name}`,
      () =>
        Effect.gen(function* () {
          const { publishableKey, url } = yield* newGame({})
          const folder = yield* projectFolder
          const printed = yield* Effect.promise(async () => {
            const [command, ...args] = generator
            await exec(join(tools, "node_modules/.bin", command), args, folder)
            return compileAndRun(folder, program, [url, publishableKey])
          })
          assert.strictEqual(at(printed, "name"), "Ada")
        })
    )
  }
})
