/** The declarations of the packages, all of them checked, in a game of its own. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, it } from "@effect/vitest"
import manifest from "../../package.json" with { type: "json" }
import { buildPackages, makeGame, runIn } from "../support/packages/game.ts"

/** A module that uses the entries of each package. */
const programs: Readonly<Record<string, string>> = {
  cli: `import { playerBackend } from "@player-backend/cli/vite"
    export default { plugins: [playerBackend({ port: 8081 })] }`,
  server: `import * as app from "@player-backend/server"
    export const names = Object.keys(app)`,
  testing: `import { runBots, TestApp } from "@player-backend/testing"
    export const app: typeof TestApp = TestApp
    export const bots: typeof runBots = runBots`
}

const options = { strict: true, skipLibCheck: false, noEmit: true, target: "es2024" }

let game = ""

beforeAll(() => {
  const { dependencies, devDependencies } = manifest
  game = makeGame(buildPackages(), [
    ...Object.keys(dependencies),
    ...Object.keys(devDependencies).filter((name) => name === "vite" || name.startsWith("@types/"))
  ])
  for (const [name, program] of Object.entries(programs)) {
    writeFileSync(join(game, `${name}.ts`), program)
    for (const [module, moduleResolution] of [
      ["nodenext", "nodenext"],
      ["esnext", "bundler"]
    ]) {
      const lib = ["esnext", "dom", "dom.iterable"]
      const compilerOptions = { ...options, module, moduleResolution, lib, types: ["node"] }
      const config = { compilerOptions, files: [`${name}.ts`] }
      writeFileSync(join(game, `${name}.${moduleResolution}.json`), JSON.stringify(config))
    }
  }
})

describe("the declarations of a package", () => {
  for (const name of Object.keys(programs)) {
    for (const resolution of ["nodenext", "bundler"]) {
      it(`compiles all declarations of a package under ${resolution}: ${name}`, () => {
        runIn(game, "tsc", "--project", `${name}.${resolution}.json`)
      })
    }
  }
})
