/**
 * Tests in two projects: `house` (the rules of this repository, a second) and `service` (all
 * others, which share the Postgres that `test/global-setup.ts` starts).
 */
import { existsSync } from "node:fs"
import { defineConfig } from "vitest/config"

const house = "test/house.test.ts"
const globalSetup = "test/global-setup.ts"

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
          exclude: [house, "test/bench/peers/**"],
          globalSetup: existsSync(globalSetup) ? [globalSetup] : []
        }
      }
    ]
  }
})
