/** Nodes that serve hosted apps, and projects with apps on them. */
import { rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { configure } from "#testing/players"
import { visit } from "./hosting.ts"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "./http-stack.ts"

const domain = "apps.example.net"

/** A node with a database and a data directory of its own, which ends with it. */
export const hostingNode = (name: string) => {
  const dataDir = join(tmpdir(), `svc-${name}-${process.pid}`)
  const Files = Layer.effectDiscard(
    Effect.addFinalizer(() => Effect.promise(() => rm(dataDir, { recursive: true, force: true })))
  )
  const env = { SVC_DATA_DIR: dataDir, SVC_HOSTING_DOMAIN: domain }
  const Node = nodeWith(env).pipe(
    Layer.provideMerge(SharedDatabase.layer),
    Layer.provideMerge(Files)
  )
  return { dataDir, env, Node }
}

/** A project with hosting; `open` and `openVersion` visit the app of its development environment. */
export const makeHostedProject = Effect.fnUntraced(function* (
  features: Readonly<Record<string, boolean>> = {}
) {
  const url = yield* addressOfNode
  const sql = yield* SqlClient.SqlClient
  const { development, production, projectId } = yield* makeTenants
  const [row] = yield* sql<{ slug: string }>`select slug from projects where id = ${projectId}`
  const slug = row?.slug ?? ""
  const target = { url, ...development }
  yield* configure(target, { features: { hosting: true, ...features } })
  const host = `${slug}--dev.${domain}`
  const visitAt =
    (name: string) => (path: string, headers?: Readonly<Record<string, string>>, method?: string) =>
      visit(url, name, path, headers, method)
  return {
    url,
    sql,
    slug,
    host,
    target,
    production: { url, ...production },
    open: visitAt(host),
    openVersion: (version: number) => visitAt(`v${version}--${host}`)
  }
})
