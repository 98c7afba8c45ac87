/**
 * Custom domains of hosted apps. The owner of a domain proves it by a TXT record. A later proof by
 * another environment takes the domain over, since DNS names the current owner. Each node holds the
 * verified domains in memory, so that it recognises the host of an app at once. A change reaches
 * every node within a second.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { CurrentActor, type EnvironmentCaller } from "#rpc/auth"
import {
  DomainNotVerified,
  type InvalidRequest,
  NotFound,
  TooManyDomains,
  Unavailable
} from "#rpc/errors/codes"
import { type CustomDomain, DomainName } from "#rpc/hosting/domains"
import { hosting } from "#rpc/hosting/limits"
import { DomainRepository, type DomainRow } from "#sql/hosting/domains"
import { requireCredentials } from "#server/platform/credential-check"
import { makeTransaction } from "#server/platform/database"
import { awaitDatabase } from "#server/platform/database-start"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import { invalidField } from "#server/platform/invalid-request"
import { Invalidation } from "#server/platform/invalidation"
import { Settings } from "#server/platform/settings/settings"
import { findTextRecords } from "#server/platform/text-records"
import { Audit } from "../audit/service.ts"
import { labelOf, makeAddresses } from "./addresses.ts"

type ByName<E> = (
  environment: EnvironmentCaller,
  domain: string
) => Effect.Effect<CustomDomain, E, CurrentActor>

export class CustomDomains extends Context.Service<
  CustomDomains,
  {
    /** The label of the environment behind a verified domain. */
    readonly labelOf: (host: string) => string | undefined
    readonly list: (environment: EnvironmentCaller) => Effect.Effect<ReadonlyArray<CustomDomain>>
    readonly add: ByName<InvalidRequest | TooManyDomains>
    /** Checks the TXT record, and serves the domain from then on. */
    readonly verify: ByName<DomainNotVerified | NotFound | Unavailable>
    readonly remove: (
      environment: EnvironmentCaller,
      domain: string
    ) => Effect.Effect<void, NotFound, CurrentActor>
  }
>()("server/features/hosting/domains/CustomDomains") {
  static readonly layer = Layer.effect(
    CustomDomains,
    Effect.gen(function* () {
      const domains = yield* DomainRepository
      const labels = yield* makeLabels
      const view = yield* makeView
      return CustomDomains.of({
        labelOf: (host) => labels.get(host),
        list: ({ environmentId }) =>
          Effect.map(domains.list(environmentId), (rows) => rows.map(view)),
        ...(yield* makeChanges),
        verify: yield* makeVerify
      })
    })
  )
}

/** Labels of verified domains. A node reads them again after every change. */
const makeLabels = Effect.gen(function* () {
  const domains = yield* DomainRepository
  const invalidation = yield* Invalidation
  const labels = new Map<string, string>()
  const load = Effect.map(domains.served, (rows) => {
    const served = new Map(rows.map(({ domain, name, slug }) => [domain, labelOf(slug, name)]))
    for (const domain of labels.keys()) if (!served.has(domain)) labels.delete(domain)
    for (const [domain, label] of served) labels.set(domain, label)
  })
  yield* awaitDatabase(load)
  yield* invalidation.subscribe(({ kind }) =>
    kind === "domains" || kind === "everything" ? load : Effect.void
  )
  return labels
})

const recordOf = ({ domain, token }: DomainRow) => ({
  type: "TXT" as const,
  name: `_svc.${domain}`,
  value: `svc-domain=${token}`
})

const makeView = Effect.map(Settings, ({ baseUrl, hosting }) => {
  const { at } = makeAddresses({ baseUrl, domain: hosting.domain })
  return (row: DomainRow): CustomDomain => ({
    domain: row.domain,
    status: row.verifiedAt === null ? "pending" : "verified",
    url: `${at(row.domain)}/`,
    record: recordOf(row),
    createdAt: DateTime.formatIso(row.createdAt),
    verifiedAt: row.verifiedAt === null ? null : DateTime.formatIso(row.verifiedAt)
  })
})

/** Check of a custom domain. Refuses domains of the service and of the hosting domain. */
const makeCheckName = Effect.map(Settings, ({ baseUrl, hosting }) => {
  const own = [new URL(baseUrl).hostname, ...(hosting.domain === undefined ? [] : [hosting.domain])]
  return (domain: string) =>
    own.some((host) => domain === host || domain.endsWith(`.${host}`))
      ? invalidField("domain", "Expected a domain of your own, not one of this service")
      : Effect.void
})

const isDomainName = Schema.is(DomainName)

const makeChanges = Effect.gen(function* () {
  const audit = yield* Audit
  const checkName = yield* makeCheckName
  const domains = yield* DomainRepository
  const invalidation = yield* Invalidation
  const random = yield* SecureRandom.SecureRandom
  const transaction = yield* makeTransaction
  const view = yield* makeView
  const insert = Effect.fnUntraced(function* (environment: EnvironmentCaller, domain: string) {
    const { environmentId } = environment
    yield* domains.lock(environmentId)
    const known = yield* domains.list(environmentId)
    const same = known.find((row) => row.domain === domain)
    if (same !== undefined) return view(same)
    const limit = hosting.domainsMax
    if (known.length >= limit) return yield* new TooManyDomains({ details: { limit } })
    const createdAt = yield* DateTime.now
    const token = yield* random.uuidV4()
    const row = { environmentId, domain, token, createdAt, verifiedAt: null }
    yield* domains.insert(row)
    yield* audit.record(environment, {
      action: "domain.add",
      target: { kind: "domain", id: domain }
    })
    return view(row)
  })
  return {
    add: Effect.fn("CustomDomains.add")(function* (environment: EnvironmentCaller, domain: string) {
      yield* checkName(domain)
      return yield* transaction(insert(environment, domain))
    }),
    remove: Effect.fn("CustomDomains.remove")(function* (
      environment: EnvironmentCaller,
      domain: string
    ) {
      if (!isDomainName(domain)) return yield* new NotFound()
      const { environmentId } = environment
      const removed = yield* audit.recordChange(
        environment,
        Effect.tap(domains.delete({ environmentId, domain }), () =>
          invalidation.publish({ kind: "domains", id: environmentId })
        ),
        (rows) =>
          rows.length === 0
            ? undefined
            : { action: "domain.remove", target: { kind: "domain", id: domain } }
      )
      if (removed.length === 0) return yield* new NotFound()
      yield* invalidation.awaitAcknowledgements
    })
  }
})

const shownRecords = (found: ReadonlyArray<string>): ReadonlyArray<string> =>
  found
    .slice(0, hosting.domainRecordsShown)
    .map((value) => value.slice(0, hosting.domainRecordMaxCharacters).toWellFormed())

/** Actor of changes that the service itself makes in a project. */
const service = { kind: "system", id: "hosting", name: "hosting" } as const

const makeVerify = Effect.gen(function* () {
  const audit = yield* Audit
  const domains = yield* DomainRepository
  const invalidation = yield* Invalidation
  const transaction = yield* makeTransaction
  const view = yield* makeView
  const { nameServers } = (yield* Settings).hosting
  const queries = new FairSemaphore({
    ...hosting.domainQueries,
    refuse: Effect.fail(new Unavailable())
  })
  const find = Effect.fnUntraced(function* ({ environmentId }: EnvironmentCaller, domain: string) {
    if (!isDomainName(domain)) return yield* new NotFound()
    const row = yield* domains.find({ environmentId, domain })
    return Option.isSome(row) ? row.value : yield* new NotFound()
  })
  const take = Effect.fnUntraced(function* (environment: EnvironmentCaller, domain: string) {
    const { environmentId } = environment
    const target = { kind: "domain", id: domain }
    // Another environment that proves the domain at the same time waits, and takes it over.
    yield* domains.lockName(domain)
    for (const loser of yield* domains.release({ environmentId, domain })) {
      yield* Effect.provideService(
        audit.record(loser, { action: "domain.lose", target }),
        CurrentActor,
        service
      )
    }
    yield* domains.verify({ environmentId, domain, now: yield* DateTime.now })
    yield* invalidation.publish({ kind: "domains", id: environmentId })
    yield* audit.record(environment, { action: "domain.verify", target })
  })
  return Effect.fn("CustomDomains.verify")(function* (
    environment: EnvironmentCaller,
    domain: string
  ) {
    const row = yield* find(environment, domain)
    if (row.verifiedAt !== null) return view(row)
    const { name, value } = recordOf(row)
    const query = findTextRecords(name, nameServers).pipe(
      Effect.tapError((error) => Effect.logInfo("Failed to prove a domain", error)),
      Effect.mapError(() => new Unavailable())
    )
    const found = yield* queries.withPermit(environment.environmentId)(query)
    if (!found.includes(value)) {
      return yield* new DomainNotVerified({ details: { name, value, found: shownRecords(found) } })
    }
    yield* requireCredentials
    yield* transaction(take(environment, domain))
    yield* invalidation.awaitAcknowledgements
    return view(yield* find(environment, domain))
  })
})
