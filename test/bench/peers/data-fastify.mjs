/**
 * The least that can be done of guests, saves and stats: Fastify routes, each one statement over `pg`,
 * prepared, on the service's own tables and with its statements. Nobody is checked: the bearer token is
 * the player's id; there are no keys, no features, no rules, no throttles.
 *
 * A guest who asks with the header `x-signed` gets tokens like those of the service: a signed access token,
 * and a refresh token with a MAC that is stored as its hash. The statement is then the service's, too, which
 * also looks for functions that want to hear of new players.
 *
 * Arguments: the port, the database's URL, the environment's id. `GET /readyz` answers 200.
 */
import {
  createHmac,
  createSecretKey,
  generateKeyPairSync,
  hash,
  randomBytes,
  sign
} from "node:crypto"
import Fastify from "fastify"
import pg from "pg"

const [, , port, connectionString, environmentId] = process.argv
const pool = new pg.Pool({ connectionString, max: 10 })
const app = Fastify()

const newId = (prefix) => `${prefix}_${randomBytes(16).toString("hex").toUpperCase().slice(0, 26)}`

const openGuest = `
  with signed_up as (
    insert into players (id, environment_id, display_name, is_guest, created_at)
    values ($1, $2, $3, true, $4) returning id, environment_id)
  insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at, created_at)
  select $5, environment_id, id, $6, $4, $7, $4 from signed_up`

const openSignedGuest = `
  with signed_up as (
    insert into players (id, environment_id, display_name, is_guest, declared_age_band, created_at)
    values ($1, $2, $3, true, null, $4) returning *),
  announced as (
    insert into function_deliveries
      (environment_id, kind, target, content_type, body, sent_at, due_at)
    select e.environment_id, 'event', 'onPlayerCreated', 'json',
      convert_to(e.payload::text, 'UTF8'), e.at, e.at
    from (select environment_id, json_build_object('player', json_build_object('id', id,
      'displayName', display_name, 'isGuest', is_guest, 'createdAt', created_at)), created_at
      from signed_up) as e (environment_id, payload, at)
      join functions f on f.environment_id = e.environment_id
    where f.enabled and 'onPlayerCreated' = any(f.hooks))
  insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at, created_at)
  select $5, environment_id, id, $6, $4, $7, $4 from signed_up`

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
const macKey = createSecretKey(randomBytes(32))

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url")

const head = encode({ alg: "ES256", kid: randomBytes(32).toString("base64url"), typ: "at+jwt" })

const accessTokenOf = (claims) => {
  const text = `${head}.${encode(claims)}`
  const key = { key: privateKey, dsaEncoding: "ieee-p1363" }
  return `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`
}

const refreshTokenOf = (session) => {
  const body = `${session.slice(4)}.${randomBytes(32).toString("base64url")}`
  const mac = createHmac("sha256", macKey).update(body).digest().subarray(0, 16)
  return `rt_${body}.${mac.toString("base64url")}`
}

const putSave = `
  with put as (
    insert into saves as s (environment_id, player_id, key, version, data, size, updated_at, fresh,
      growth, guest_bytes_most, environment_room)
    values ($1, $2, $3, 1 + coalesce((select floor from save_counts
        where player_id = $2 and environment_id = $1), 0), $4, $5, $6, true, $5, $8, $9)
    on conflict (player_id, environment_id, key) do update set version = s.version + 1,
      data = excluded.data, size = excluded.size, updated_at = excluded.updated_at,
      fresh = s.data is null, growth = excluded.size - s.size,
      guest_bytes_most = excluded.guest_bytes_most, environment_room = excluded.environment_room
    returning s.version, s.fresh, s.growth
  ), counted as (
    insert into save_counts as c (environment_id, player_id, saves, most, deleted, floor)
    select $1, $2, 1, $7::int, 0, 0 from put where fresh
    on conflict (player_id, environment_id) do update set saves = c.saves + 1, most = excluded.most
  )
  select version, growth from put`

const getSave = `
  select key, version, size, updated_at, data from saves
  where player_id = $1 and environment_id = $2 and key = $3 and data is not null`

const combined = (column) => `
  case excluded.aggregation
    when 'sum' then least(greatest(s.${column}, -8.9e307), 8.9e307)
      + least(greatest(excluded.${column}, -8.9e307), 8.9e307)
    when 'max' then greatest(s.${column}, excluded.${column})
    when 'min' then least(s.${column}, excluded.${column})
    else excluded.${column} end`

const inPeriod = (column, first) => `
  ${column} = case when s.${first} < excluded.${first} then excluded.${column}
    else ${combined(column)} end, ${first} = greatest(s.${first}, excluded.${first})`

const reportStats = `
  with noted as (
    insert into stat_signals (environment_id, player_id, stat, value, reason, created_at)
    select $1, $2, r.stat, r.value, r.reason, $3
    from json_to_recordset($4::text::json) as r(stat text, value float8, reason text)
  )
  insert into stats as s (environment_id, player_id, stat, aggregation, total, day, daily,
    week, weekly, month, monthly)
  select $1, $2, r.stat, r.aggregation, r.value, $5::text::date, r.value, $6::text::date, r.value,
    $7::text::date, r.value
  from json_to_recordset($8::text::json) as r(stat text, aggregation text, value float8)
  order by r.stat
  on conflict (player_id, environment_id, stat) do update set
    aggregation = excluded.aggregation, total = ${combined("total")},
    ${inPeriod("daily", "day")}, ${inPeriod("weekly", "week")}, ${inPeriod("monthly", "month")}
  returning stat, total, daily, weekly, monthly`

const playerOf = (request) => request.headers.authorization.slice("Bearer ".length)

app.get("/readyz", () => ({}))

app.post("/v1/auth/guest", async (request) => {
  const now = new Date()
  const id = newId("pl")
  const session = newId("ses")
  const end = new Date(now.getTime() + 90 * 86_400_000)
  const player = { id, displayName: "Player", isGuest: true, createdAt: now, identities: [] }
  if (request.headers["x-signed"] === undefined) {
    const refreshToken = randomBytes(32).toString("base64url")
    const values = [id, environmentId, "Player", now, session, refreshToken, end]
    await pool.query({ name: "guest", text: openGuest, values })
    return { player, accessToken: id, expiresIn: 900, refreshToken }
  }
  const refreshToken = refreshTokenOf(session)
  const stored = hash("sha256", refreshToken, "base64url")
  const values = [id, environmentId, "Player", now, session, stored, end]
  await pool.query({ name: "signed guest", text: openSignedGuest, values })
  const iat = Math.floor(now.getTime() / 1000)
  const claims = { iss: "http://127.0.0.1", aud: environmentId, sub: id, sid: session, guest: true }
  const accessToken = accessTokenOf({ ...claims, iat, exp: iat + 900 })
  return { player, accessToken, expiresIn: 900, refreshToken }
})

app.put("/v1/saves/:key", async (request) => {
  const { key } = request.params
  const data = JSON.stringify(request.body.data)
  const size = Buffer.byteLength(data)
  const now = new Date()
  const { rows } = await pool.query({
    name: "save",
    text: putSave,
    values: [environmentId, playerOf(request), key, data, size, now, 100, null, null]
  })
  return { key, version: rows[0].version, size, updatedAt: now }
})

app.get("/v1/saves/:key", async (request, reply) => {
  const { key } = request.params
  const values = [playerOf(request), environmentId, key]
  const { rows } = await pool.query({ name: "load", text: getSave, values })
  const { data, size, updated_at: updatedAt, version } = rows[0]
  const item = JSON.stringify({ key, version, size, updatedAt })
  reply.type("application/json")
  return `${item.slice(0, -1)},"data":${data}}`
})

app.post("/v1/stats", async (request) => {
  const now = new Date()
  const day = now.toISOString().slice(0, 10)
  const values = Object.entries(request.body.stats).map(([stat, value]) => ({
    stat,
    aggregation: "sum",
    value
  }))
  const { rows } = await pool.query({
    name: "stats",
    text: reportStats,
    values: [
      environmentId,
      playerOf(request),
      now,
      "[]",
      day,
      day,
      `${day.slice(0, 8)}01`,
      JSON.stringify(values)
    ]
  })
  const stats = {}
  for (const { daily, monthly, stat, total, weekly } of rows) {
    stats[stat] = { all: total, daily, weekly, monthly }
  }
  return { stats, rejected: [], unlocked: [] }
})

await app.listen({ port: Number(port), host: "127.0.0.1" })
process.once("disconnect", () => process.exit())
