/**
 * Four in a row: a turn-based game with a chat and voice, written to be copied.
 *
 * - The game is in the state of the room: board, turn and who plays which color. A reload shows it again.
 * - The page of the host is the referee: others send what they want to do, and the host changes the state.
 * - The chat is a channel, which has its own limits and moderation. The voice call is a part of the channel.
 */
import { sounds, soundButton } from "../sound.js"
import { columns, computerMove, drop, emptyBoard, isFull, lineOf } from "./rules.js"

const { baseUrl, publishableKey } = globalThis.svcConfig
const { createClient, isError } = await import(`${baseUrl}/sdk/client.js`)

const computer = "computer"
const computerMillis = 700

/** Every tab is a player of its own; a reload continues as the same one. */
const client = createClient({ baseUrl, key: publishableKey, storage: sessionStorage })

const $ = (selector) => document.querySelector(selector)
const nameOf = (room, id) =>
  id === computer
    ? "Computer"
    : (room.players.find((player) => player.id === id)?.displayName ?? "nobody")

let toastTimer
const toast = (text, millis = 4000) => {
  $(".toast").textContent = text
  clearTimeout(toastTimer)
  if (millis > 0) toastTimer = setTimeout(() => ($(".toast").textContent = ""), millis)
}

// The referee: runs in every page, and acts in that of the host.

const newGame = (room) => {
  const [red, yellow] = room.players.map(({ id }) => id)
  return { board: emptyBoard, turn: "r", last: null, line: null, r: red, y: yellow ?? computer }
}

/** A key of the state that was set to null is gone. */
const isOver = ({ board, line }) => line !== undefined || isFull(board)

/** Lets a player drop a disc, if it is this player's turn. */
const playAs = (room, player, column) => {
  const { state } = room
  if (!room.isHost || isOver(state) || state[state.turn] !== player) return
  const dropped = drop(state.board, column, state.turn)
  if (dropped === undefined) return
  room.setState({
    board: dropped.board,
    last: dropped.index,
    line: lineOf(dropped.board) ?? null,
    turn: state.turn === "r" ? "y" : "r"
  })
}

/** Starts a game when there is none, or when somebody took the computer's place or left. */
const keepGame = (room) => {
  if (!room.isHost) return
  const ids = room.players.map(({ id }) => id)
  const { board, r, y } = room.state
  const isComplete = ids.includes(r) && (ids.length === 1 ? y === computer : ids.includes(y))
  if (board === undefined || !isComplete) room.setState(newGame(room))
}

const referee = (room) => {
  // A report may hold anything, since any page can send one.
  room.onMessage("drop", ({ data, from }) => playAs(room, from, data?.column))
  room.onMessage("again", () => {
    if (room.isHost && isOver(room.state)) room.setState(newGame(room))
  })
  for (const event of ["player_joined", "player_left", "host_changed"])
    room.on(event, () => keepGame(room))
  keepGame(room)
  // The computer thinks for a moment, in the page of the host.
  let thinking
  room.on("change", () => {
    const { board, turn } = room.state
    clearTimeout(thinking)
    if (board === undefined || room.state[turn] !== computer || isOver(room.state)) return
    thinking = setTimeout(() => playAs(room, computer, computerMove(board)), computerMillis)
  })
}

const ask = (room, type, data) => {
  if (!room.isHost) return room.send(type, data, { to: [room.hostId] })
  if (type === "drop") playAs(room, room.me.id, data.column)
  else if (isOver(room.state)) room.setState(newGame(room))
}

// Drawing: one button for each column.

const makeBoard = (room) => {
  const buttons = Array.from({ length: columns }, (_, column) => {
    const button = document.createElement("button")
    button.type = "button"
    button.setAttribute("aria-label", `Column ${column + 1}`)
    button.addEventListener("click", () => ask(room, "drop", { column }))
    return button
  })
  $(".board").replaceChildren(...buttons)
  return buttons
}

const statusOf = (room) => {
  const { board, line, turn } = room.state
  const mine = room.state[turn] === room.me?.id
  if (line !== undefined) return `${nameOf(room, room.state[turn === "r" ? "y" : "r"])} wins!`
  if (isFull(board)) return "A draw."
  return mine ? "Your turn: choose a column." : `${nameOf(room, room.state[turn])} is thinking...`
}

const draw = (room, buttons) => {
  const { board, last, line, turn } = room.state
  if (board === undefined) return
  const mayPlay = room.state[turn] === room.me?.id && !isOver(room.state)
  buttons.forEach((button, column) => {
    const cells = [0, 1, 2, 3, 4, 5].map((row) => row * columns + column)
    const discs = cells.map((cell) => {
      const disc = document.createElement("span")
      const color = { r: "red", y: "yellow" }[board[cell]] ?? ""
      disc.className = `disc ${color} ${cell === last ? "last" : ""} ${line?.includes(cell) ? "won" : ""}`
      return disc
    })
    button.replaceChildren(...discs)
    button.setAttribute("aria-disabled", String(!mayPlay || board[column] !== "."))
  })
  for (const [name, key] of [
    ["red", "r"],
    ["yellow", "y"]
  ]) {
    $(`.players .${name}`).textContent = nameOf(room, room.state[key])
    $(`.players .${name}`).classList.toggle("turn", turn === key && !isOver(room.state))
  }
  $("#status").textContent = statusOf(room)
  $("#again").hidden = !isOver(room.state)
}

/** Plays a sound for what has changed since the last call. */
const makeListener = (room) => {
  let { board, line } = room.state
  return () => {
    const before = { board, line }
    ;({ board, line } = room.state)
    if (board === before.board) return
    if (line === undefined || before.line !== undefined) return sounds.drop()
    // The turn has passed on to the loser.
    if (room.state[room.state.turn] === room.me?.id) sounds.lose()
    else sounds.win()
  }
}

// The chat: a channel named after the room. Who comes first creates it.

const openChat = async (room) => {
  const enter = (voice) =>
    client.channels.joinOrCreate(`@four-${room.code.toLowerCase()}`, { maxMembers: 2, ...voice })
  try {
    return await enter({ voice: { mode: "sfu" } })
  } catch (error) {
    // Without voice in the config there is still a chat.
    if (isError(error, "feature_disabled")) return enter()
    throw error
  }
}

// Voice: a call of the channel. The browser asks for the microphone at the first click.

const startVoice = (room, channel) => {
  let call
  const show = () => {
    const others = call?.members.filter(({ id }) => id !== room.me?.id) ?? []
    const speaking = call?.speaking.map((id) => nameOf(room, id)) ?? []
    $("#call").textContent = call === undefined ? "Talk" : "Hang up"
    $("#mute").hidden = call === undefined
    $("#mute").textContent = call?.muted ? "Unmute" : "Mute"
    $("#voice span").textContent =
      call === undefined
        ? ""
        : speaking.length > 0
          ? `${speaking.join(", ")} speaks`
          : others.length > 0
            ? `with ${others.map(({ id }) => nameOf(room, id)).join(", ")}`
            : "waiting for the other player"
  }
  const join = async () => {
    call = await channel.voice.join({ microphone: true })
    call.on("change", show)
    call.on("closed", ({ reason }) => {
      if (reason !== "left") toast(`The call has ended (${reason}).`)
      call = undefined
      show()
    })
  }
  $("#call").addEventListener("click", async () => {
    $("#call").disabled = true
    const change = call === undefined ? join() : call.leave()
    await change.catch((error) => toast(error.message))
    $("#call").disabled = false
    show()
  })
  $("#mute").addEventListener("click", () =>
    call?.mute(!call.muted).then(show, (error) => toast(error.message))
  )
  $("#voice").hidden = false
}

const startChat = async (room) => {
  const channel = await openChat(room)
  const say = (name, text) => {
    const line = document.createElement("li")
    const author = document.createElement("b")
    author.textContent = `${name}: `
    line.append(author, text)
    $(".chat ol").append(line)
    line.scrollIntoView({ block: "nearest" })
  }
  channel.onMessage("chat", ({ data, from }) => {
    const isMine = from === room.me?.id
    say(isMine ? "You" : nameOf(room, from), String(data))
    if (!isMine) sounds.message()
  })
  channel.on("warn", ({ message }) => toast(message))
  if (channel.settings.voice !== null) startVoice(room, channel)
  $("#talk").addEventListener("submit", (event) => {
    event.preventDefault()
    const text = $("#talk input").value.trim()
    if (text !== "") channel.send("chat", text)
    $("#talk input").value = ""
  })
}

// The game.

const play = (room) => {
  const buttons = makeBoard(room)
  const listen = makeListener(room)
  const show = () => {
    draw(room, buttons)
    listen()
  }
  room.on("change", show)
  room.on("player_joined", ({ player }) => {
    toast(`${player.displayName} plays against you now.`)
    sounds.join()
  })
  room.on("player_left", () => toast("The other player has left: the computer plays."))
  room.on("disconnected", () => toast("Connection lost. Your seat is kept, resuming...", 0))
  room.on("reconnected", () => toast("Resumed: the game goes on."))
  room.on("closed", ({ reason }) =>
    toast(`The room has ended (${reason}). Reload to play again.`, 0)
  )
  referee(room)
  show()
  $("#again").addEventListener("click", () => ask(room, "again"))
}

$("#start").addEventListener("submit", async (event) => {
  event.preventDefault()
  const name = $("#start input").value.trim()
  sessionStorage.setItem("name", name)
  $("#start button").disabled = true
  try {
    await client.sessions.ensure({ displayName: name })
    const room = (await client.rooms.resume()) ?? (await client.rooms.quickMatch("four"))
    $(".start").hidden = true
    play(room)
    await startChat(room)
  } catch (error) {
    $("#start button").disabled = false
    toast(isError(error) ? error.message : String(error))
  }
})
$("#second").addEventListener("click", () =>
  open(`${location.pathname}?name=Second`, "_blank", "noopener")
)
soundButton($("#sound"))
// The player may type already: only a name of before replaces that.
const known = sessionStorage.getItem("name") ?? new URLSearchParams(location.search).get("name")
if (known) {
  $("#start input").value = known
  $("#start").requestSubmit()
} else $("#start input").focus()
