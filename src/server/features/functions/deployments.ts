/**
 * Versions of the code of Functions. A new version starts beside the live one before it replaces it. If
 * it does not start, the deployment fails and the live version stays.
 */
import { Context, Cron, DateTime, Effect, Layer, Option } from "effect"
import { CurrentActor, type EnvironmentCaller } from "#rpc/auth"
import { NotFound, Unavailable } from "#rpc/errors/codes"
import type { NewFunctionsDeployment } from "#rpc/functions/deployment"
import { functions } from "#rpc/functions/limits"
import type { EnvironmentId } from "#rpc/ids"
import { FunctionsDeploymentRepository } from "#sql/functions/deployments"
import { type DueCron, FunctionsRepository } from "#sql/functions/settings"
import { requireCredentials } from "#server/platform/credential-check"
import { makeTransaction } from "#server/platform/database"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { packModules, readBundle, unpackBundle } from "./bundles.ts"
import { FunctionsChanges } from "./changes.ts"
import type { FunctionBundle } from "./program.ts"
import { FunctionsRuntime } from "./runtime.ts"
import { deploymentView, makeUrlOf } from "./view.ts"

/** Versions of the code of environments. */
export class FunctionsDeployments extends Context.Service<FunctionsDeployments>()(
  "server/features/functions/deployments/FunctionsDeployments",
  {
    make: Effect.gen(function* () {
      const deployments = yield* FunctionsDeploymentRepository
      const urlOf = yield* makeUrlOf
      const validate = yield* makeValidate
      const secretsOf = (environmentId: EnvironmentId) =>
        Effect.map(
          deployments.secretNames(environmentId),
          (rows) => new Set(rows.map(({ name }) => name))
        )
      const shown = Effect.fnUntraced(function* (environment: EnvironmentCaller, version: number) {
        const { environmentId } = environment
        const row = yield* deployments.find({ environmentId, version })
        const found = yield* Effect.mapError(Effect.fromOption(row), () => new NotFound())
        return deploymentView(found, yield* urlOf(environment), yield* secretsOf(environmentId))
      })
      const { checkDisk } = yield* FunctionsRuntime
      const deploy = yield* makeDeploy((environmentId, bundle) =>
        Effect.andThen(checkDisk, validate(environmentId, bundle))
      )
      const activate = yield* makeActivate(validate)
      return {
        deploy: Effect.fn("Functions.deploy")(function* (
          environment: EnvironmentCaller,
          deployment: NewFunctionsDeployment
        ) {
          const version = yield* deploy(environment, deployment)
          return yield* Effect.orDie(shown(environment, version))
        }),
        activate: Effect.fn("Functions.activate")(function* (
          environment: EnvironmentCaller,
          text: string
        ) {
          const version = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined
          if (version === undefined) return yield* new NotFound()
          yield* activate(environment, version)
          return yield* shown(environment, version)
        }),
        page: Effect.fn("Functions.page")(function* (
          environment: EnvironmentCaller,
          page: { readonly before: number; readonly limit: number }
        ) {
          const { environmentId } = environment
          const rows = yield* deployments.page({ environmentId, ...page })
          const url = yield* urlOf(environment)
          const secrets = yield* secretsOf(environmentId)
          return rows.map((row) => deploymentView(row, url, secrets))
        })
      }
    })
  }
) {
  static readonly layer = Layer.effect(FunctionsDeployments, this.make)
}

type Validate = Effect.Success<typeof makeValidate>

/**
 * Starts and stops code for validation, few at a time. Checks the credentials of the caller again
 * afterwards.
 */
const makeValidate = Effect.gen(function* () {
  const runtime = yield* FunctionsRuntime
  const permits = new FairSemaphore({
    ...functions.validations,
    refuse: Effect.fail(new Unavailable())
  })
  // Code that is about to start may keep others waiting for longer than its key counts.
  return (environmentId: EnvironmentId, bundle: FunctionBundle) =>
    Effect.tap(permits.withPermit(environmentId)(runtime.validate(bundle)), requireCredentials)
})

/** Returns the first due time of each cron. */
const dueCrons = (
  environmentId: EnvironmentId,
  crons: ReadonlyArray<string>,
  now: DateTime.Utc
): ReadonlyArray<DueCron> =>
  crons.map((cron) => ({ environmentId, cron, dueAt: nextTime(cron, now) }))

/** Returns the next time of a cron. */
export const nextTime = (cron: string, now: DateTime.Utc): DateTime.Utc =>
  DateTime.fromDateUnsafe(Cron.next(Cron.parseUnsafe(cron, "UTC"), now))

const eventOf = (action: AuditEvent["action"], version: number): AuditEvent => ({
  action,
  target: { kind: "functionVersion", id: `${version}` }
})

const makeDeploy = Effect.fnUntraced(function* (validate: Validate) {
  const audit = yield* Audit
  const deployments = yield* FunctionsDeploymentRepository
  const repository = yield* FunctionsRepository
  const changes = yield* FunctionsChanges
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* (
    environment: EnvironmentCaller,
    deployment: NewFunctionsDeployment
  ) {
    const { environmentId } = environment
    const bundle = yield* Effect.fromResult(readBundle(deployment))
    const { hooks } = yield* validate(environmentId, bundle)
    const packed = yield* packModules(bundle.modules)
    const { id: createdBy } = yield* CurrentActor
    const { compatibilityDate = null, cors = true, crons = [], message = null } = deployment
    const version = yield* transaction(
      Effect.gen(function* () {
        const now = yield* DateTime.now
        const { lastVersion } = yield* repository.lock(environmentId)
        const version = lastVersion + 1
        yield* deployments.insert({
          environmentId,
          version,
          createdAt: now,
          createdBy,
          activatedAt: now,
          message,
          compatibilityDate,
          mainModule: bundle.mainModule,
          modules: bundle.modules.map(({ content, name }) => ({ name, sizeBytes: content.length })),
          bindings: bundle.bindings,
          vars: bundle.vars,
          crons,
          cors,
          hooks,
          bundle: packed
        })
        const due = dueCrons(environmentId, crons, now)
        yield* repository.setLive({ environmentId, version, hooks }, due)
        yield* deployments.deleteOld(environmentId, functions.keptDeployments)
        yield* audit.record(environment, eventOf("functions.deploy", version))
        yield* changes.publish(environmentId)
        return version
      })
    )
    yield* changes.awaitApplied(environmentId)
    return version
  })
})

const makeActivate = Effect.fnUntraced(function* (validate: Validate) {
  const audit = yield* Audit
  const deployments = yield* FunctionsDeploymentRepository
  const repository = yield* FunctionsRepository
  const changes = yield* FunctionsChanges
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* (environment: EnvironmentCaller, version: number) {
    const { environmentId } = environment
    const row = Option.getOrUndefined(yield* deployments.bundle({ environmentId, version }))
    if (row === undefined) return yield* new NotFound()
    // The runtime may be a later one than at the deployment.
    const { hooks } = yield* validate(environmentId, yield* unpackBundle(row))
    const hasChanged = yield* transaction(
      Effect.gen(function* () {
        const { liveVersion } = yield* repository.lock(environmentId)
        if (liveVersion === version) return false
        const still = yield* deployments.find({ environmentId, version })
        if (Option.isNone(still)) return yield* new NotFound()
        const now = yield* DateTime.now
        yield* deployments.activate({ environmentId, version, now })
        const due = dueCrons(environmentId, row.crons, now)
        yield* repository.setLive({ environmentId, version, hooks }, due)
        yield* audit.record(environment, eventOf("functions.activate", version))
        yield* changes.publish(environmentId)
        return true
      })
    )
    if (hasChanged) yield* changes.awaitApplied(environmentId)
  })
})
