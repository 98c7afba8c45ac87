/** Settings of a runner in a cluster. */
import { Schema } from "effect"
import { type EnvironmentOf, incomplete, type Issue, optional, valuesOf } from "./table.ts"
import { whole } from "./values.ts"

export const cluster = {
  host: optional("SVC_RUNNER_HOST", Schema.String)`
    The address at which other runners reach this one. Set it with \`SVC_RUNNER_PORT\` to join a cluster.`,
  port: optional("SVC_RUNNER_PORT", whole(1, 65_535))`
    The TCP port for other runners, who prove that they have \`SVC_MASTER_KEY\`. See [the runner
    port](deploy.md#the-runner-port).`,
  cert: optional("SVC_RUNNER_TLS_CERT", Schema.String)`
    A file with a certificate in PEM, for mutual TLS between runners. Set it with the next two, on all runners.`,
  key: optional("SVC_RUNNER_TLS_KEY", Schema.String)`
    A file with the private key of that certificate.`,
  ca: optional("SVC_RUNNER_TLS_CA", Schema.String)`
    A file with the authority that signs the certificates of all runners, and of nothing else.`
}

type Environment = EnvironmentOf<typeof cluster>

/** Address of this runner, with its files for mutual TLS; undefined for a single process. */
export const runnerOf = (env: Environment) => {
  const { ca, cert, host, key, port } = valuesOf(cluster, env)
  if (host === undefined || port === undefined) return undefined
  const isPlain = ca === undefined || cert === undefined || key === undefined
  return { host, port, tls: isPlain ? undefined : { ca, cert, key } }
}

export const clusterIssues = (env: Environment): ReadonlyArray<Issue> => [
  ...incomplete(env, ["SVC_RUNNER_HOST", "SVC_RUNNER_PORT"]),
  ...incomplete(env, ["SVC_RUNNER_TLS_CERT", "SVC_RUNNER_TLS_KEY", "SVC_RUNNER_TLS_CA"])
]
