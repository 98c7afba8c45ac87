/**
 * Star rush: a realtime arena for up to eight players, written to be copied.
 *
 * - Each page moves its own ship, and sends its place 20 times a second.
 * - Others are drawn 100 ms in the past, between two places that have arrived: that hides the network's jitter.
 * - The page of the host is the referee: it places the stars and counts them. Both are in the state of the room, so
 *   they survive a lost connection, a new host and the loss of the process that runs the room.
 */
const { baseUrl, publishableKey } = globalThis.svcConfig
const { createClient, isError } = await import(`${baseUrl}/sdk/client.js`)

const world = { width: 1600, height: 900 }
const speed = 420
const radius = 26
const starCount = 5
const sendMillis = 50
const delayMillis = 100
const aloneMillis = 1500

/** Every tab is a player of its own; a reload continues as the same one. */
const storageFor = (prefix) => ({
  getItem: (name) => sessionStorage.getItem(prefix + name),
  setItem: (name, value) => sessionStorage.setItem(prefix + name, value),
  removeItem: (name) => sessionStorage.removeItem(prefix + name)
})
const clientFor = (prefix) =>
  createClient({ baseUrl, key: publishableKey, storage: storageFor(prefix) })

const $ = (selector) => document.querySelector(selector)
const canvas = $("canvas")
const context = canvas.getContext("2d")

/** Colours that differ for up to eight players, by the order of their seats. */
const colors = [
  "#4cc9f0",
  "#f72585",
  "#80ed99",
  "#ffb703",
  "#b8a1ff",
  "#ff7b54",
  "#e0fbfc",
  "#f15bb5"
]
const colorOf = (room, id) =>
  colors[room.players.findIndex((player) => player.id === id) % 8] ?? "#fff"

const random = (max) => Math.round(radius * 2 + Math.random() * (max - radius * 4))
const place = () => ({ x: random(world.width), y: random(world.height) })
const near = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) < radius * 1.8

let toastTimer
const toast = (text, millis = 4000) => {
  $(".toast").textContent = text
  clearTimeout(toastTimer)
  if (millis > 0) toastTimer = setTimeout(() => ($(".toast").textContent = ""), millis)
}

// The referee: runs in every page, and acts in that of the host.

/** Places missing stars, and grants a star to the first who reports to be at it. */
const referee = (room) => {
  /** Stars that were granted, but whose change has not come back from the service yet. */
  const granted = new Set()
  const grant = (id, { key, round }) => {
    const star = room.state[key]
    if (!room.isHost || star?.round !== round || granted.has(`${key}/${round}`)) return
    granted.add(`${key}/${round}`)
    const score = (room.state.scores ?? {})[id] ?? 0
    room.setState({
      [key]: { ...place(), round: round + 1 },
      scores: { ...room.state.scores, [id]: score + 1 }
    })
  }
  const begin = () => {
    if (!room.isHost || room.state.star0 !== undefined) return
    const stars = Array.from({ length: starCount }, (_, n) => [
      `star${n}`,
      { ...place(), round: 0 }
    ])
    room.setState({ ...Object.fromEntries(stars), scores: {} })
  }
  room.on("message", ({ data, from, type }) => type === "grab" && grant(from, data))
  room.on("host_changed", begin)
  begin()
  return grant
}

/** Reports the stars that a ship touches, each once. */
const collector = (room, grant) => {
  const reported = new Map()
  return (ship) => {
    for (let n = 0; n < starCount; n += 1) {
      const key = `star${n}`
      const star = room.state[key]
      if (star === undefined || !near(star, ship) || reported.get(key) === star.round) continue
      reported.set(key, star.round)
      const grab = { key, round: star.round }
      if (room.isHost) grant(room.me.id, grab)
      else room.send("grab", grab, { to: [room.hostId] })
    }
  }
}

// The others, as they were 100 ms ago.

const makeOthers = (client, room) => {
  const tracks = new Map()
  room.on("message", ({ at, data, from, type }) => {
    if (type !== "at") return
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
  canvas.addEventListener(name, ({ buttons, offsetX, offsetY }) => {
    if (buttons > 0)
      finger = { x: (offsetX - view.x) / view.scale, y: (offsetY - view.y) / view.scale }
  })
}
for (const name of ["pointerup", "pointercancel"])
  canvas.addEventListener(name, () => (finger = undefined))

const steer = (ship) => {
  if (finger !== undefined)
    return near(finger, ship) ? [0, 0] : [finger.x - ship.x, finger.y - ship.y]
  const pressed = Array.from(keys, (code) => directions[code] ?? [0, 0])
  return pressed.reduce(([x, y], [dx, dy]) => [x + dx, y + dy], [0, 0])
}

const clamp = (value, max) => Math.min(max - radius, Math.max(radius, value))

const move = (ship, [dx, dy], seconds) => {
  const length = Math.hypot(dx, dy)
  if (length === 0) return
  ship.x = clamp(ship.x + (dx / length) * speed * seconds, world.width)
  ship.y = clamp(ship.y + (dy / length) * speed * seconds, world.height)
}

// Drawing.

let view = { scale: 1, x: 0, y: 0 }

const drawStar = ({ x, y }, time) => {
  context.beginPath()
  for (let n = 0; n < 10; n += 1) {
    const length = n % 2 === 0 ? 24 : 11
    const angle = (n * Math.PI) / 5 + time / 1500
    context.lineTo(x + Math.sin(angle) * length, y - Math.cos(angle) * length)
  }
  context.closePath()
  context.shadowColor = context.fillStyle = "#ffd166"
  context.shadowBlur = 30
  context.fill()
  context.shadowBlur = 0
}

/** The last places of each ship, which fade behind it. */
const trails = new Map()

const drawShip = ({ x, y }, color, { connected, displayName, id }) => {
  const trail = trails.get(id) ?? []
  trails.set(id, [...trail, { x, y }].slice(-24))
  context.fillStyle = color
  trail.forEach((at, n) => {
    context.globalAlpha = (n / trail.length) * 0.25
    context.beginPath()
    context.arc(at.x, at.y, (radius * n) / trail.length, 0, Math.PI * 2)
    context.fill()
  })
  context.globalAlpha = connected ? 1 : 0.35
  context.beginPath()
  context.arc(x, y, radius, 0, Math.PI * 2)
  context.fill()
  context.fillStyle = "#fff"
  context.font = "600 22px system-ui"
  context.textAlign = "center"
  context.fillText(displayName, x, y - radius - 12)
  context.globalAlpha = 1
}

/** Where the camera is along one side: the whole world if it fits, else around the ship. */
const cameraOf = (at, worldSize, screenSize, scale) => {
  const shown = screenSize / scale
  return shown >= worldSize
    ? (worldSize - shown) / 2
    : Math.min(worldSize - shown, Math.max(0, at - shown / 2))
}

const drawWorld = (ship) => {
  const ratio = devicePixelRatio
  canvas.width = innerWidth * ratio
  canvas.height = innerHeight * ratio
  const scale = Math.max(0.6, Math.min(innerWidth / world.width, innerHeight / world.height))
  const x = cameraOf(ship.x, world.width, innerWidth, scale)
  const y = cameraOf(ship.y, world.height, innerHeight, scale)
  view = { scale, x: -x * scale, y: -y * scale }
  context.setTransform(scale * ratio, 0, 0, scale * ratio, view.x * ratio, view.y * ratio)
  context.fillStyle = "#111a35"
  context.fillRect(0, 0, world.width, world.height)
  context.strokeStyle = "#1f2b52"
  context.lineWidth = 2
  context.beginPath()
  for (let line = 0; line <= world.width; line += 100) {
    context.moveTo(line, 0)
    context.lineTo(line, world.height)
  }
  for (let line = 0; line <= world.height; line += 100) {
    context.moveTo(0, line)
    context.lineTo(world.width, line)
  }
  context.stroke()
}

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
  const ping = client.latency === null ? "-" : `${Math.max(1, Math.round(client.latency))} ms`
  $("#net").textContent = `room ${room.code} · ping ${ping}`
}

// The bot: a second player of this page, who comes when nobody else does and leaves when somebody comes.

const startBot = async (roomId) => {
  const client = clientFor("bot/")
  await client.sessions.ensure({ displayName: "Robo" })
  const room = await client.rooms.join({ roomId })
  const collect = collector(room, referee(room))
  const ship = place()
  const stars = () =>
    Array.from({ length: starCount }, (_, n) => room.state[`star${n}`]).filter(Boolean)
  const timer = setInterval(() => {
    const [goal] = stars().toSorted(
      (a, b) => Math.hypot(a.x - ship.x, a.y - ship.y) - Math.hypot(b.x - ship.x, b.y - ship.y)
    )
    // Slower than a player, who should win.
    if (goal !== undefined)
      move(ship, [goal.x - ship.x, goal.y - ship.y], (sendMillis / 1000) * 0.4)
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
  const ship = place()
  const collect = collector(room, referee(room))
  const whereIs = makeOthers(client, room)
  const show = () => showRoom(client, room)
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
  room.on("player_joined", ({ player }) => toast(`${player.displayName} joined`))
  setInterval(() => {
    if (client.status === "online")
      room.send("at", { x: Math.round(ship.x), y: Math.round(ship.y) })
  }, sendMillis)
  setInterval(() => client.ping().then(show, () => undefined), 2000)
  let last = performance.now()
  const frame = (now) => {
    move(ship, steer(ship), Math.min(0.1, (now - last) / 1000))
    last = now
    collect(ship)
    drawWorld(ship)
    for (let n = 0; n < starCount; n += 1)
      if (room.state[`star${n}`]) drawStar(room.state[`star${n}`], now)
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
drawWorld({ x: world.width / 2, y: world.height / 2 })
// The player may type already: only a name of before replaces that.
const known = sessionStorage.getItem("name") ?? new URLSearchParams(location.search).get("name")
if (known) {
  $("input").value = known
  $("form").requestSubmit()
} else $("input").focus()
