/**
 * Runs inside workerd for the service, with the bindings of the player's modules but none of their code:
 * statements and migrations on databases.
 */
import { authentic } from "./authentic.mjs"

const migrationsTable =
  "create table if not exists _svc_migrations (name text primary key, applied_at text not null default current_timestamp)"

const asParameter = (value) => (Array.isArray(value) ? new Uint8Array(value).buffer : value)

const clean = (error) => String(error.message ?? error).replace(/^D1_ERROR: /, "")

/** The public methods give rows without their columns, or without what they changed. */
const run = async (database, sql, params) => {
  const statement = database.prepare(sql).bind(...params.map(asParameter))
  const results = await statement.dbSession._send(
    "/query",
    statement.statement,
    statement.params,
    "ROWS_AND_COLUMNS",
    { setAttribute() {} }
  )
  return Array.isArray(results) ? results[0] : results
}

/** Whether a value may be an integer that lost digits: rows have numbers of 53 bits. */
const isInexact = (value) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)

/** The statement with every large integer as text; it fails, and changes nothing, unless it only reads. */
const withLargeIntegersAsText = (sql, columns) => {
  const names = columns.map((_, index) => `c${index}`)
  const range = `${Number.MIN_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`
  const values = names.map(
    (name) =>
      `case when typeof(${name}) = 'integer' and ${name} not between ${range} then cast(${name} as text) else ${name} end`
  )
  const inner = sql.replace(/[\s;]+$/, "")
  return `with result(${names}) as (\n${inner}\n) select ${values} from result`
}

/** A page of the keys of a namespace, or of the files of a store. */
const pageOf = async (store, query) => {
  const page = await store.list(query)
  const entries =
    page.keys?.map(({ expiration, name }) => ({
      name,
      sizeBytes: null,
      expiresAt: expiration ?? null
    })) ?? page.objects.map(({ key, size }) => ({ name: key, sizeBytes: size, expiresAt: null }))
  const isLast = page.list_complete ?? !page.truncated
  return { entries, cursor: isLast ? null : page.cursor }
}

const operations = {
  /** Starts what the first call would start, so that no call pays for it. */
  async warm(_, { __svc_key, ...stores }) {
    const touched = Object.values(stores).map((binding) => {
      if (typeof binding.prepare === "function") return binding.prepare("select 1").all()
      if (typeof binding.head === "function") return binding.head("warm")
      return binding.get("warm")
    })
    const outcomes = await Promise.allSettled(touched)
    const failed = outcomes.find(({ status }) => status === "rejected")
    return failed === undefined ? {} : { error: clean(failed.reason) }
  },
  async query({ binding, params, sql, rowsMax }, env) {
    const database = env[binding]
    try {
      const { error, meta, results, success } = await run(database, sql, params)
      if (!success) return { error: clean(error) }
      const { columns } = results
      let rows = results.rows.slice(0, rowsMax)
      // What `returning` gives cannot be read again.
      if (meta.changes === 0 && rows.some((row) => row.some(isInexact))) {
        const exact = await run(database, withLargeIntegersAsText(sql, columns), params)
        if (!exact.success) return { error: clean(exact.error) }
        rows = exact.results.rows.slice(0, rowsMax)
      }
      return {
        columns,
        rows,
        ...(results.rows.length > rowsMax ? { truncated: true } : {}),
        rowsAffected: meta.changes,
        lastInsertId: meta.changes > 0 ? meta.last_row_id : null
      }
    } catch (error) {
      return { error: clean(error) }
    }
  },
  entries: ({ binding, page }, env) => pageOf(env[binding], page),
  async deleteEntries({ binding, limit, name, prefix = name }, env) {
    const store = env[binding]
    const { cursor, entries } = await pageOf(store, {
      prefix,
      limit: name === undefined ? limit : 1
    })
    const names = entries
      .map((entry) => entry.name)
      .filter((its) => name === undefined || its === name)
    await Promise.all(names.map((each) => store.delete(each)))
    return { deleted: names.length, more: name === undefined && cursor !== null }
  },
  async migrate({ binding, migrations }, env) {
    const database = env[binding]
    await database.prepare(migrationsTable).run()
    const { results } = await database.prepare("select name from _svc_migrations").all()
    const known = new Set(results.map(({ name }) => name))
    const result = { applied: [], skipped: [], failed: null }
    for (const { name, sql } of migrations) {
      if (known.has(name)) {
        result.skipped.push(name)
        continue
      }
      try {
        const note = database.prepare("insert into _svc_migrations (name) values (?)").bind(name)
        await database.batch([database.prepare(sql), note])
        known.add(name)
        result.applied.push(name)
      } catch (error) {
        result.failed = { name, message: clean(error) }
        break
      }
    }
    return result
  }
}

let accept

export default {
  async fetch(request, env) {
    accept ??= authentic(env.__svc_key)
    const call = await accept(request)
    if (call?.facts.kind !== "admin") {
      return new Response(null, { status: 403, headers: { "x-svc-outcome": "refused" } })
    }
    const { operation, ...input } = call.body
    const result = await operations[operation](input, env)
    return Response.json(result, { headers: { "x-svc-outcome": "returned" } })
  }
}
