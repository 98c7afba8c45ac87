/**
 * Star rush: a realtime arena for up to eight players, written to be copied. `rules.js` has the rules,
 * `drawing.js` what is on the canvas.
 *
 * - Each page moves its own ship, and sends its place 20 times a second.
 * - Others are drawn 100 ms in the past, between two places that have arrived: that hides the network's jitter.
 * - The page of the host is the referee: it places the stars, counts them, and begins the rounds. All of that is in
 *   the state of the room, so it survives a lost connection, a new host and the loss of the process with the room.
 */
import { sounds, soundButton } from "../sound.js"
import { canvas, colorOf, drawShip, drawStar, drawWorld, placeAt } from "./drawing.js"
import * as rules from "./rules.js"

const { baseUrl, publishableKey } = globalThis.svcConfig
const { createClient, isError } = await import(`${baseUrl}/sdk/client.js`)

const sendMillis = 50
const delayMillis = 100
const aloneMillis = 1500
const refereeMillis = 250
/** A report that nobody has answered is repeated after this time. */
const repeatMillis = 1000

/** Every tab is a player of its own; a reload continues as the same one. */
const storageFor = (prefix) => ({
  getItem: (name) => sessionStorage.getItem(prefix + name),
  setItem: (name, value) => sessionStorage.setItem(prefix + name, value),
  removeItem: (name) => sessionStorage.removeItem(prefix + name)
})
const clientFor = (prefix) =>
  createClient({ baseUrl, key: publishableKey, storage: storageFor(prefix) })

const $ = (selector) => document.querySelector(selector)

let toastTimer
const toast = (text, millis = 4000) => {
  $(".toast").textContent = text
  clearTimeout(toastTimer)
  if (millis > 0) toastTimer = setTimeout(() => ($(".toast").textContent = ""), millis)
}

// The referee: runs in every page, and acts in that of the host.

/** Begins rounds, and grants a star to the first who reports to be at it. Returns what the host's own ship calls. */
const referee = (client, room) => {
  // The state of this page has the change at once, so the next one builds on it. A change that is lost with the
  // connection is taken back: its star can be collected again.
  const change = (patch) => patch && room.optimistic.setState(patch).catch(() => undefined)
  const isActing = () => room.isHost && client.status === "online"
  const grant = (id, report) => {
    if (!isActing()) return
    const player = room.players.find((each) => each.id === id)
    change(rules.collect(room.state, player, report, client.clock.now()))
  }
  room.onMessage("grab", ({ data, from }) => grant(from, data))
  const timer = setInterval(
    () => isActing() && change(rules.nextRound(room.state, client.clock.now())),
    refereeMillis
  )
  room.on("closed", () => clearInterval(timer))
  return grant
}

/** Reports the stars that a ship touches. */
const collector = (room, grant) => {
  const reported = new Map()
  return (ship) => {
    for (const [key, star] of rules.starsOf(room.state)) {
      const name = `${key}/${star.number}`
      const isWaiting = performance.now() - (reported.get(name) ?? -Infinity) < repeatMillis
      if (isWaiting || !rules.near(star, ship)) continue
      reported.set(name, performance.now())
      const report = { key, number: star.number }
      if (room.isHost) grant(room.me.id, report)
      else room.send("grab", report, { to: [room.hostId] })
    }
  }
}

// The others, as they were 100 ms ago.

const makeOthers = (client, room) => {
  const tracks = new Map()
  room.onMessage("at", ({ at, data, from }) => {
    const track = tracks.get(from) ?? []
    track.push({ at, ...data })
    tracks.set(from, track.slice(-20))
  })
  room.on("player_left", ({ playerId }) => tracks.delete(playerId))
  return (id) => {
    const track = tracks.get(id)
    if (track === undefined) return undefined
    const time = client.clock.now() - delayMillis
    const next = track.findIndex(({ at }) => at > time)
    if (next === -1) return track.at(-1)
    if (next === 0) return track[0]
    const [before, after] = [track[next - 1], track[next]]
    const part = (time - before.at) / (after.at - before.at)
    return { x: before.x + (after.x - before.x) * part, y: before.y + (after.y - before.y) * part }
  }
}

// Input: keys, or a finger that the ship follows.

const keys = new Set()
let finger
const directions = {
  ArrowUp: [0, -1],
  KeyW: [0, -1],
  ArrowDown: [0, 1],
  KeyS: [0, 1],
  ArrowLeft: [-1, 0],
  KeyA: [-1, 0],
  ArrowRight: [1, 0],
  KeyD: [1, 0]
}
addEventListener("keydown", ({ code }) => keys.add(code))
addEventListener("keyup", ({ code }) => keys.delete(code))
addEventListener("blur", () => keys.clear())
for (const name of ["pointerdown", "pointermove"]) {
  canvas.addEventListener(name, (event) => {
    if (event.buttons > 0) finger = placeAt(event)
  })
}
for (const name of ["pointerup", "pointercancel"])
  canvas.addEventListener(name, () => (finger = undefined))

const steer = (ship) => {
  if (finger !== undefined)
    return rules.near(finger, ship) ? [0, 0] : [finger.x - ship.x, finger.y - ship.y]
  const pressed = Array.from(keys, (code) => directions[code] ?? [0, 0])
  return pressed.reduce(([x, y], [dx, dy]) => [x + dx, y + dy], [0, 0])
}

// What stands beside the canvas.

const showRoom = (client, room) => {
  const scores = room.state.scores ?? {}
  const rows = room.players.map((player) => {
    const row = document.createElement("li")
    row.style.setProperty("--color", colorOf(room, player.id))
    row.className = player.connected ? "" : "away"
    const score = document.createElement("b")
    score.textContent = scores[player.id] ?? 0
    const marks = `${player.id === room.hostId ? " (host)" : ""}${player.connected ? "" : " (away)"}`
    row.append(`${player.displayName}${marks}`, score)
    return row
  })
  $(".hud ol").replaceChildren(...rows)
  const ping = client.latency === null ? "-" : `${client.latency} ms`
  $("#net").textContent = `room ${room.code} · ping ${ping}`
}

/** Shows who has won, and when the next round begins. */
const showResult = (client, room) => {
  const { nextAt, winner } = room.state
  $(".result").hidden = winner === undefined
  if (winner === undefined) return
  const text =
    winner.id === room.me?.id ? "You win the round!" : `${winner.displayName} wins the round.`
  // A screen reader says what changes.
  if ($(".result h2").textContent !== text) $(".result h2").textContent = text
  const seconds = Math.max(0, Math.ceil((nextAt - client.clock.now()) / 1000))
  $(".result p").textContent = `The next round begins in ${seconds} s.`
}

/** Plays a sound for what has changed since the last call. */
const makeListener = (room) => {
  let { scores = {}, winner } = room.state
  return () => {
    const before = { scores, winner }
    ;({ scores = {}, winner } = room.state)
    const me = room.me?.id
    if (winner !== undefined && before.winner === undefined)
      return winner.id === me ? sounds.win() : sounds.lose()
    const gained = Object.keys(scores).filter((id) => scores[id] > (before.scores[id] ?? 0))
    if (gained.includes(me)) sounds.point()
    else if (gained.length > 0) sounds.pointOfOther()
  }
}

// The bot: a second player of this page, who comes when nobody else does and leaves when somebody comes.

const startBot = async (roomId) => {
  const client = clientFor("bot/")
  await client.sessions.ensure({ displayName: "Robo" })
  const room = await client.rooms.join({ roomId })
  const collect = collector(room, referee(client, room))
  const ship = rules.randomPlace()
  const timer = setInterval(() => {
    const [goal] = rules
      .starsOf(room.state)
      .map(([, star]) => star)
      .toSorted((a, b) => rules.distance(a, ship) - rules.distance(b, ship))
    // Slower than a player, who should win.
    if (goal !== undefined)
      rules.move(ship, [goal.x - ship.x, goal.y - ship.y], sendMillis / 1000, 0.4)
    collect(ship)
    room.send("at", { x: Math.round(ship.x), y: Math.round(ship.y) })
  }, sendMillis)
  const stop = async () => {
    clearInterval(timer)
    await room.leave().catch(() => undefined)
    client.close()
  }
  return { id: room.me.id, stop }
}

const keepCompany = (room) => {
  let bot
  let isStarting = false
  setInterval(async () => {
    const others = room.players.filter(({ id }) => id !== room.me?.id && id !== bot?.id)
    if (others.length > 0 && bot !== undefined) {
      const leaving = bot
      bot = undefined
      await leaving.stop()
    }
    if (others.length > 0 || bot !== undefined || isStarting || room.closed) return
    isStarting = true
    bot = await startBot(room.id).catch(() => undefined)
    isStarting = false
  }, aloneMillis)
}

/** On the machine of a service with two runners: a button that kills the one with this room. */
const offerKill = async (room) => {
  if (location.hostname !== "demo-games--dev.localhost") return
  const { runners } = await (await fetch(`${baseUrl}/demo/runners`)).json()
  const body = JSON.stringify({ roomId: room.id })
  const kill = () => fetch(`${baseUrl}/demo/kill-runner`, { method: "POST", body }).catch(() => {})
  $("#kill").addEventListener("click", kill)
  $("#kill").hidden = runners !== 2
}

// The game.

const play = (client, room) => {
  const ship = rules.randomPlace()
  const collect = collector(room, referee(client, room))
  const whereIs = makeOthers(client, room)
  const listen = makeListener(room)
  const show = () => {
    showRoom(client, room)
    showResult(client, room)
    listen()
  }
  room.on("change", show)
  let lostAt = 0
  room.on("disconnected", () => {
    lostAt = performance.now()
    toast("Connection lost. Your seat is kept, resuming...", 0)
  })
  room.on("reconnected", () =>
    toast(`Back in the same room after ${((performance.now() - lostAt) / 1000).toFixed(1)} s.`)
  )
  room.on(
    "room_joined",
    ({ resumed }) => resumed && lostAt === 0 && toast("The room moved to another process.")
  )
  room.on("closed", ({ reason }) =>
    toast(`The room has ended (${reason}). Reload to play again.`, 0)
  )
  room.on("player_joined", ({ player }) => {
    toast(`${player.displayName} joined`)
    sounds.join()
  })
  setInterval(() => {
    if (client.status === "online")
      room.send("at", { x: Math.round(ship.x), y: Math.round(ship.y) })
  }, sendMillis)
  setInterval(() => client.ping().then(show, () => undefined), 2000)
  setInterval(() => showResult(client, room), 250)
  let last = performance.now()
  const frame = (now) => {
    rules.move(ship, steer(ship), Math.min(0.1, (now - last) / 1000))
    last = now
    collect(ship)
    drawWorld(ship)
    for (const [, star] of rules.starsOf(room.state)) drawStar(star, now)
    for (const player of room.players) {
      const at = player.id === room.me?.id ? ship : whereIs(player.id)
      if (at !== undefined) drawShip(at, colorOf(room, player.id), player)
    }
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
  show()
  keepCompany(room)
  offerKill(room).catch(() => undefined)
}

$("form").addEventListener("submit", async (event) => {
  event.preventDefault()
  const name = $("input").value.trim()
  sessionStorage.setItem("name", name)
  $("form button").disabled = true
  const client = clientFor("")
  try {
    await client.sessions.ensure({ displayName: name })
    const room = (await client.rooms.resume()) ?? (await client.rooms.quickMatch("arena"))
    $(".start").hidden = true
    $(".hud").hidden = false
    play(client, room)
  } catch (error) {
    $("form button").disabled = false
    toast(isError(error) ? error.message : String(error))
  }
})
$("#second").addEventListener("click", () =>
  open(`${location.pathname}?name=Second`, "_blank", "noopener")
)
soundButton($("#sound"))
drawWorld({ x: rules.world.width / 2, y: rules.world.height / 2 })
// The player may type already: only a name of before replaces that.
const known = sessionStorage.getItem("name") ?? new URLSearchParams(location.search).get("name")
if (known) {
  $("input").value = known
  $("form").requestSubmit()
} else $("input").focus()
