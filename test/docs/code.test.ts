/** Checks the code of the documentation: TypeScript compiles, JSON parses, and shell commands are whole. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import manifest from "../../package.json" with { type: "json" }
import { globals, root, type Sample, samplesOf } from "../support/docs/samples.ts"

/** Variables that a shell or the service's own settings have already. */
const settingsOfShell = ["DATABASE_URL"]

/** Samples of the test kit run as tests, in test/testing/examples.test.ts; compiling them takes the whole service. */
const isOfTestKit = ({ place, text }: Sample): boolean =>
  /^docs\/(?:guides|packages)\/testing\.md/.test(place) || text.includes("@player-backend/testing")

const fileOf = ({ place }: Sample): string =>
  place.replaceAll("/", "-").replace(".md:", "-line-").concat(".ts")

const source = (path: string): ReadonlyArray<string> => [`../../src/${path}.ts`]

const compilerOptions = {
  noEmit: true,
  types: ["node"],
  lib: ["esnext", "dom", "dom.iterable"],
  noUnusedLocals: false,
  noUnusedParameters: false,
  noImplicitAny: false,
  strictNullChecks: false,
  exactOptionalPropertyTypes: false,
  paths: {
    "@player-backend/client": source("client/client"),
    "@player-backend/client/effect": source("client/effect/native"),
    "@player-backend/cli/vite": source("cli/vite/plugin")
  }
}

/**
 * Something of the reader's own game: a function or a variable that is declared nowhere, or a field of a
 * value in the state of a room, which has no type without one of the game.
 */
const isOfGame = (line: string): boolean =>
  /error TS(?:2304|2552|18004):|error TS2339: .* on type '\{\}'\./.test(line)

/** What the compiler says about the samples, each as a module of its own. */
const compile = (samples: ReadonlyArray<Sample>): string => {
  mkdirSync(join(root, "dist"), { recursive: true })
  const folder = mkdtempSync(join(root, "dist/samples-"))
  try {
    for (const sample of samples) {
      const isModule = /^(?:import|export) /m.test(sample.text)
      writeFileSync(
        join(folder, fileOf(sample)),
        isModule ? sample.text : `export {}; ${sample.text}`
      )
    }
    writeFileSync(join(folder, "globals.d.ts"), globals)
    const config = {
      extends: "../../tsconfig.json",
      compilerOptions,
      include: ["*.ts"],
      exclude: []
    }
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
    const words = ["--pretty", "false", "--project", folder, "--checkers", "1"]
    execFileSync(join(root, "node_modules/.bin/tsc"), words, { stdio: "pipe" })
    return ""
  } catch (error) {
    const output =
      typeof error === "object" && error !== null && "stdout" in error ? error.stdout : error
    const lines = String(output).split("\n")
    return lines.filter((line) => line !== "" && !isOfGame(line)).join("\n")
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe("the code of the documentation", () => {
  it("compiles the code samples of the documentation against the client", () => {
    const samples = samplesOf("ts", "js").filter((sample) => !isOfTestKit(sample))
    assert.isAbove(samples.length, 25)
    assert.strictEqual(compile(samples), "")
  })

  it("reports a wrong name in a compiled code sample of the documentation", () => {
    const wrong = { place: "docs/x.md:1", text: "client.rooms.quickMtach('default')" }
    assert.include(compile([wrong]), "quickMtach")
  })

  it.each(samplesOf("json"))("parses the JSON sample in $place", ({ text }) => {
    JSON.parse(text)
  })

  it.each(samplesOf("sh", "bash"))(
    "finds whole shell commands in the sample in $place",
    ({ text }) => {
      // A reader replaces what stands in angle brackets.
      const script = text.replaceAll(/<[a-z][^<>\n]*>/g, "value")
      execFileSync("bash", ["-n"], { input: script, stdio: ["pipe", "ignore", "pipe"] })
    }
  )

  it("sets each variable of a shell command on the page that uses it", () => {
    const set = new Map<string, ReadonlySet<string>>()
    const unset = samplesOf("sh", "bash").flatMap(({ place, text }) => {
      const page = place.split(":", 1).join("")
      const names = new Set(
        Array.from(text.matchAll(/(?<![\w$-])([A-Z_]+)=/g), ([, name]) => name ?? "")
      )
      const known = names.union(set.get(page) ?? new Set(settingsOfShell))
      set.set(page, known)
      return Array.from(text.matchAll(/\$\{?([A-Z_]+)/g), ([, name]) => name ?? "")
        .filter((name) => !known.has(name))
        .map((name) => `${place}: ${name}`)
    })
    assert.deepStrictEqual(unset, [])
  })

  it("names packages in the versions of this repository", () => {
    const pinned = samplesOf("sh", "bash").flatMap(({ place, text }) =>
      Array.from(
        text.matchAll(/(?<=\s)(@?[\w/-]+)@(\d+\.\d+\.\d+)/g),
        ([, name = "", version]) => ({
          place,
          name,
          version
        })
      )
    )
    assert.isNotEmpty(pinned)
    const versions: Readonly<Record<string, string>> = {
      ...manifest.dependencies,
      ...manifest.devDependencies
    }
    for (const { name, place, version } of pinned) {
      assert.strictEqual(version, versions[name], `${name} in ${place}`)
    }
  })
})
