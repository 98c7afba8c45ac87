/**
 * Tests in five projects: `house` (the rules of this repository, a second), `service` (all others,
 * which share the Postgres that `test/support/global-setup.ts` starts) and, one after the other when these are
 * through, since each takes every core for itself, `simulation`, `chaos` and `fuzz`.
 */
import { existsSync } from "node:fs"
import { defineConfig } from "vitest/config"

const house = "test/house/house.test.ts"
const simulation = "test/simulation/simulation.test.ts"
const chaos = "test/chaos/chaos.test.ts"
const fuzz = "test/fuzz/fuzz.test.ts"
const globalSetup = existsSync("test/support/global-setup.ts")
  ? ["test/support/global-setup.ts"]
  : []

export default defineConfig({
  test: {
    environment: "node",
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    projects: [
      { extends: true, test: { name: "house", include: [house] } },
      {
        extends: true,
        test: {
          name: "service",
          include: ["test/**/*.test.ts"],
          exclude: [house, simulation, chaos, fuzz, "test/bench/peers/**"],
          globalSetup
        }
      },
      {
        extends: true,
        test: {
          name: "simulation",
          include: [simulation],
          sequence: { groupOrder: 1 },
          globalSetup
        }
      },
      {
        extends: true,
        test: { name: "chaos", include: [chaos], sequence: { groupOrder: 2 } }
      },
      {
        extends: true,
        test: { name: "fuzz", include: [fuzz], sequence: { groupOrder: 3 } }
      }
    ]
  }
})
