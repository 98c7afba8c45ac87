/**
 * Functions: the code of a project that runs in the service, with databases, secrets and crons. Each
 * endpoint is there for secret keys and for developers of the project.
 */
import { Schema, SchemaTransformation } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import { BodyMaxBytes, type CallerLimit, CallerRate } from "../auth.ts"
import {
  FunctionCpuExceeded,
  FunctionInvalid,
  FunctionsSuspended,
  NotFound,
  PrepaidRequired,
  SqlError,
  wire
} from "../errors/codes.ts"
import { group } from "../feature.ts"
import { http } from "../limits.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "../mounts.ts"
import { operation, type OperationFacts } from "../operations.ts"
import { integerText } from "../pages.ts"
import { deadLetterQuery, DeadLetterId, DeadLetterPage } from "./dead-letters.ts"
import {
  FunctionsDeployed,
  FunctionsDeployment,
  FunctionsDeploymentPage,
  NewFunctionsDeployment
} from "./deployment.ts"
import {
  deletedEntryQuery,
  entryQuery,
  FunctionsEntriesDeleted,
  FunctionsEntryPage
} from "./entries.ts"
import { FunctionsGate, RequiresFunctions } from "./gate.ts"
import { functionLogs, functions } from "./limits.ts"
import {
  ChangedLimits,
  FunctionsDeleted,
  FunctionsLogLine,
  FunctionsSecretName,
  FunctionsSecrets,
  FunctionsStatus,
  MigrationResult,
  Migrations,
  Query,
  QueryResult,
  SecretValue
} from "./responses.ts"

const integer = (maximum: number) => integerText(1, maximum)

/** Cursor of a page: the version of the last deployment. */
const Cursor = Schema.String.check(
  Schema.isPattern(/^\d{1,9}$/, { message: "Expected the nextCursor of a previous response" })
).pipe(Schema.decodeTo(Schema.Int, SchemaTransformation.numberFromString))

/** The cursor of the logs: the `id` of the last line. */
const LogCursor = Schema.String.check(
  Schema.isPattern(/^\d{1,18}$/, { message: "Expected the id of a line" })
)

const Flag = Schema.Literals(["true", "false"])

const called = [wire(NotFound), wire(FunctionsSuspended), wire(FunctionCpuExceeded)] as const

/** Versions, also those that only become live again. */
const deploymentRate: CallerLimit = {
  burst: 300,
  seconds: 3600,
  name: "functions",
  per: "environment"
}

/** The operations, for agents. */
const operations = {
  status: { tool: { name: "functions_status", effect: "reads" } },
  deployments: {
    tool: {
      name: "functions_deployments_list",
      description: "List the versions of the functions, newest first",
      effect: "reads"
    }
  },
  activate: {
    tool: {
      name: "functions_activate",
      description: "Make a version of the functions live, for a rollback",
      effect: "destroys",
      idempotent: true
    }
  },
  deadLetters: {
    tool: {
      name: "functions_dead_letters_list",
      description: "List the messages and events that functions failed to handle, newest first",
      effect: "reads"
    }
  },
  retryDeadLetter: { tool: { name: "functions_dead_letter_retry", effect: "changes" } }
} as const satisfies Record<string, OperationFacts>

const settings = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.get("status", "/functions", { params, success: FunctionsStatus }).annotateMerge(
      operation("Get the state of Functions", operations.status)
    ),
    HttpApiEndpoint.post("enable", "/functions/enable", {
      params,
      payload: ChangedLimits,
      success: FunctionsStatus,
      error: wire(PrepaidRequired)
    }).annotate(OpenApi.Summary, "Turn Functions on"),
    HttpApiEndpoint.post("disable", "/functions/disable", {
      params,
      success: FunctionsStatus
    }).annotate(OpenApi.Summary, "Turn Functions off; code and data are kept"),
    HttpApiEndpoint.put("limits", "/functions/limits", {
      params,
      payload: ChangedLimits,
      success: FunctionsStatus
    }).annotate(OpenApi.Summary, "Change the limits of a call"),
    HttpApiEndpoint.delete("remove", "/functions", {
      params,
      query: { purge: Schema.optionalKey(Flag) },
      success: FunctionsDeleted
    }).annotate(OpenApi.Summary, "Delete the code; with purge also all data and secrets")
  ] as const

const deployments = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.post("deploy", "/functions/deployments", {
      params,
      payload: NewFunctionsDeployment,
      success: FunctionsDeployed,
      error: wire(FunctionInvalid)
    })
      .annotate(RequiresFunctions, true)
      .annotate(BodyMaxBytes, functions.deploymentBodyMaxBytes)
      .annotate(CallerRate, deploymentRate)
      .annotate(OpenApi.Summary, "Deploy a version and make it live"),
    HttpApiEndpoint.get("deployments", "/functions/deployments", {
      params,
      query: {
        limit: Schema.optionalKey(integer(http.pageMax)),
        cursor: Schema.optionalKey(Cursor)
      },
      success: FunctionsDeploymentPage
    }).annotateMerge(operation("List versions, newest first", operations.deployments)),
    HttpApiEndpoint.post("activate", "/functions/deployments/:version/activate", {
      params: { ...params, version: Schema.String },
      success: FunctionsDeployment,
      error: [wire(NotFound), wire(FunctionInvalid)]
    })
      .annotate(RequiresFunctions, true)
      .annotate(CallerRate, deploymentRate)
      .annotateMerge(operation("Make a version live, for a rollback", operations.activate))
  ] as const

const secrets = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.get("secrets", "/functions/secrets", {
      params,
      success: FunctionsSecrets
    }).annotate(OpenApi.Summary, "List the names of secrets"),
    HttpApiEndpoint.put("putSecret", "/functions/secrets/:name", {
      params: { ...params, name: Schema.String },
      payload: SecretValue,
      success: FunctionsSecretName
    })
      .annotate(RequiresFunctions, true)
      .annotate(BodyMaxBytes, functions.secretBodyMaxBytes)
      .annotate(OpenApi.Summary, "Set a secret; it is stored encrypted and never returned"),
    HttpApiEndpoint.delete("deleteSecret", "/functions/secrets/:name", {
      params: { ...params, name: Schema.String },
      success: FunctionsSecretName,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Delete a secret")
  ] as const

const databases = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.post("query", "/functions/db/:binding/query", {
      params: { ...params, binding: Schema.String },
      payload: Query,
      success: QueryResult,
      error: [wire(SqlError), ...called]
    })
      .annotate(RequiresFunctions, true)
      .annotate(BodyMaxBytes, functions.databaseBodyMaxBytes)
      .annotate(OpenApi.Summary, "Run one statement on a database of the live version"),
    HttpApiEndpoint.post("migrate", "/functions/db/:binding/migrate", {
      params: { ...params, binding: Schema.String },
      payload: Migrations,
      success: MigrationResult,
      error: called
    })
      .annotate(RequiresFunctions, true)
      .annotate(BodyMaxBytes, functions.databaseBodyMaxBytes)
      .annotate(OpenApi.Summary, "Apply migrations, each once and in a transaction of its own")
  ] as const

/** Keys of key-value storage, and files: a way to delete them when the code may not run. */
const entries = <P extends MountParams>(params: P) => {
  const store = { ...params, binding: Schema.String }
  return [
    HttpApiEndpoint.get("keys", "/functions/kv/:binding", {
      params: store,
      query: entryQuery,
      success: FunctionsEntryPage,
      error: called
    })
      .annotate(RequiresFunctions, true)
      .annotate(OpenApi.Summary, "List keys of a key-value storage of the live version"),
    HttpApiEndpoint.delete("deleteKeys", "/functions/kv/:binding", {
      params: store,
      query: deletedEntryQuery,
      success: FunctionsEntriesDeleted,
      error: called
    })
      .annotate(RequiresFunctions, true)
      .annotate(OpenApi.Summary, "Delete a key, or those with a prefix"),
    HttpApiEndpoint.get("files", "/functions/files/:binding", {
      params: store,
      query: entryQuery,
      success: FunctionsEntryPage,
      error: called
    })
      .annotate(RequiresFunctions, true)
      .annotate(OpenApi.Summary, "List files of a store of the live version"),
    HttpApiEndpoint.delete("deleteFiles", "/functions/files/:binding", {
      params: store,
      query: deletedEntryQuery,
      success: FunctionsEntriesDeleted,
      error: called
    })
      .annotate(RequiresFunctions, true)
      .annotate(OpenApi.Summary, "Delete a file, or those with a prefix")
  ] as const
}

const logs = <P extends MountParams>(params: P) =>
  HttpApiEndpoint.get("logs", "/functions/logs", {
    params,
    query: {
      after: Schema.optionalKey(LogCursor),
      limit: Schema.optionalKey(integer(functionLogs.pageMax)),
      follow: Schema.optionalKey(Flag)
    },
    success: HttpApiSchema.StreamNdjson({ schema: FunctionsLogLine })
  }).annotate(OpenApi.Summary, "Read log lines, one JSON value each; with follow also new ones")

const deadLetters = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.get("deadLetters", "/functions/dead-letters", {
      params,
      query: deadLetterQuery,
      success: DeadLetterPage
    }).annotateMerge(
      operation(
        "List messages and events that failed for good, newest first",
        operations.deadLetters
      )
    ),
    HttpApiEndpoint.post("retryDeadLetter", "/functions/dead-letters/:id/retry", {
      params: { ...params, id: Schema.String },
      success: DeadLetterId,
      error: wire(NotFound)
    }).annotateMerge(
      operation(
        "Deliver a dead letter again, as if it had just been sent",
        operations.retryDeadLetter
      )
    ),
    HttpApiEndpoint.delete("deleteDeadLetter", "/functions/dead-letters/:id", {
      params: { ...params, id: Schema.String },
      success: DeadLetterId,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Delete a dead letter")
  ] as const

const endpoints = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(
    id,
    "server",
    "Functions",
    "Code that runs in the service, with databases, secrets and crons."
  )
    .add(
      ...settings(params),
      ...deployments(params),
      ...secrets(params),
      ...databases(params),
      ...entries(params),
      ...deadLetters(params),
      logs(params)
    )
    .middleware(FunctionsGate)

/** `/v1/admin/functions`, for secret keys. */
export class FunctionsApi extends underKey(endpoints("functions", keyParams)) {}

/** The same for developers of the project. */
export class ProjectFunctionsApi extends underProject(
  endpoints("projectFunctions", projectParams)
) {}
