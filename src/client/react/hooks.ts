/**
 * React hooks (package entry `./client/react`): the player, a room and a channel as values that change.
 * A component renders again after each change. The directive lets server components import them.
 */
"use client"

import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react"
import type {
  AnyMessages,
  Channel,
  ChannelClosed,
  ChannelMessage,
  JsonObject,
  Member,
  Player,
  Room,
  RoomClosed,
  Sessions,
  Unsubscribe
} from "../client.ts"
import { isError } from "../errors.ts"

/** View of a room for a component. */
export interface RoomView<State, PlayerState> extends Pick<
  Room<State, PlayerState>,
  "hostId" | "isHost" | "me" | "players" | "state"
> {
  /**
   * Whether the client is connected. It is false while the client reconnects, and after the end of
   * the room.
   */
  readonly isConnected: boolean
  /** Reason for the end of the room; undefined while it is open. */
  readonly closed: RoomClosed | undefined
  readonly me: Member<PlayerState> | undefined
}

/** View of a channel for a component. */
export interface ChannelView extends Pick<
  Channel,
  "canSend" | "isOwner" | "members" | "mutedUntil" | "settings"
> {
  /**
   * Whether the client is connected. It is false while the client reconnects, and after the end of
   * the channel.
   */
  readonly isConnected: boolean
  /** Reason for the end of the channel; undefined while it is open. */
  readonly closed: ChannelClosed | undefined
  /** Last messages since the component was shown, oldest first. */
  readonly messages: ReadonlyArray<ChannelMessage>
}

/** Maximum number of messages in a channel's view. */
const messagesMax = 100

/** A value that changes, as React reads it: the same object until something has changed. */
interface Store<View> {
  readonly get: () => View
  readonly subscribe: (changed: () => void) => Unsubscribe
}

const isSame = (a: object, b: object): boolean => {
  const values = new Map<string, unknown>(Object.entries(b))
  return Object.entries(a).every(([name, value]) => Object.is(value, values.get(name)))
}

const storeOf = <View extends object>(
  read: () => View,
  listen: (changed: () => void) => ReadonlyArray<Unsubscribe>
): Store<View> => {
  let view = read()
  const update = () => {
    const next = read()
    if (!isSame(next, view)) view = next
  }
  return {
    get: () => view,
    subscribe: (changed) => {
      const stops = listen(() => {
        update()
        changed()
      })
      // Something may have changed since the component rendered.
      update()
      return () => {
        for (const stop of stops) stop()
      }
    }
  }
}

const nothing: Store<null> = { get: () => null, subscribe: () => () => undefined }

const useStore = <View>({ get, subscribe }: Store<View>): View =>
  useSyncExternalStore(subscribe, get, get)

/**
 * Returns the signed-in player; null before `sessions.resume` or `ensure`, and after a sign-out.
 *
 * @example
 * const player = usePlayer(client)
 * return player === null ? <SignIn /> : <Menu name={player.displayName} />
 */
export const usePlayer = ({
  sessions
}: {
  readonly sessions: Pick<Sessions, "onChange" | "player">
}): Player | null => {
  const store = useMemo(
    (): Store<Player | null> => ({
      get: () => sessions.player,
      subscribe: (changed) => sessions.onChange(changed)
    }),
    [sessions]
  )
  return useStore(store)
}

const roomStore = <State, PlayerState, Messages>(
  room: Room<State, PlayerState, Messages>
): Store<RoomView<State, PlayerState>> => {
  let isConnected = true
  const read = (): RoomView<State, PlayerState> => {
    const { closed, hostId, isHost, me, players, state } = room
    const isOpen = isConnected && closed === undefined
    return { closed, hostId, isConnected: isOpen, isHost, me, players, state }
  }
  return storeOf(read, (changed) => {
    const connected = (now: boolean) => () => {
      isConnected = now
      changed()
    }
    return [
      room.on("change", changed),
      room.on("closed", changed),
      room.on("disconnected", connected(false)),
      room.on("reconnected", connected(true))
    ]
  })
}

/**
 * Returns what a room shows; null without a room.
 *
 * @example
 * const view = useRoom(room)
 * return <ul>{view?.players.map(({ displayName, id }) => <li key={id}>{displayName}</li>)}</ul>
 */
export const useRoom = <State, PlayerState, Messages>(
  room: Room<State, PlayerState, Messages> | null
): RoomView<State, PlayerState> | null => {
  const store = useMemo(
    (): Store<RoomView<State, PlayerState> | null> => (room === null ? nothing : roomStore(room)),
    [room]
  )
  return useStore(store)
}

/** The room of {@link useEnteredRoom}, and why there is none. */
export interface EnteredRoom<State, PlayerState, Messages> {
  /** Null until the call has entered it. */
  readonly room: Room<State, PlayerState, Messages> | null
  /** What the call rejected with. */
  readonly error: unknown
}

const outside = { room: null, error: undefined }

/**
 * Enters a room while the component is shown, again when one of `inputs` changes, and leaves it
 * afterwards. In React's strict mode, which shows each component twice, it enters once.
 *
 * @example
 * const enter = (signal: AbortSignal) => client.rooms.join(code, { signal })
 * const { error, room } = useEnteredRoom(enter, [client, code])
 * const view = useRoom(room)
 */
export const useEnteredRoom = <
  State = JsonObject,
  PlayerState = JsonObject,
  Messages = AnyMessages
>(
  enter: (signal: AbortSignal) => Promise<Room<State, PlayerState, Messages>>,
  inputs: ReadonlyArray<unknown>
): EnteredRoom<State, PlayerState, Messages> => {
  const [entered, setEntered] = useState<EnteredRoom<State, PlayerState, Messages>>(outside)
  /** Settles when the room before is left. */
  const left = useRef(Promise.resolve())
  useEffect(() => {
    const hiding = new AbortController()
    const { signal } = hiding
    const entering = left.current.then(() =>
      // Strict mode hides the component before this runs.
      signal.aborted ? undefined : enter(signal)
    )
    entering.then(
      (room) => {
        if (room !== undefined && !signal.aborted) setEntered({ room, error: undefined })
      },
      (error: unknown) => {
        if (!signal.aborted) setEntered({ room: null, error })
      }
    )
    return () => {
      hiding.abort()
      left.current = entering.then(leave, () => undefined)
      setEntered(outside)
    }
  }, inputs)
  return entered
}

/** Leaves a room. One that has ended, or whose connection is lost, needs no more than its grace. */
const leave = async (room: Pick<Room, "leave"> | undefined): Promise<void> => {
  try {
    await room?.leave()
  } catch (error) {
    if (!isError(error)) throw error
  }
}

const channelStore = (channel: Channel): Store<ChannelView> => {
  let isConnected = true
  let messages: ChannelView["messages"] = []
  const read = (): ChannelView => {
    const { canSend, closed, isOwner, members, mutedUntil, settings } = channel
    const isOpen = isConnected && closed === undefined
    return {
      canSend,
      closed,
      isConnected: isOpen,
      isOwner,
      members,
      messages,
      mutedUntil,
      settings
    }
  }
  return storeOf(read, (changed) => {
    const connected = (now: boolean) => () => {
      isConnected = now
      changed()
    }
    return [
      channel.on("message", (message) => {
        messages = [...messages, message].slice(-messagesMax)
        changed()
      }),
      channel.on("change", changed),
      channel.on("closed", changed),
      channel.on("disconnected", connected(false)),
      channel.on("reconnected", connected(true))
    ]
  })
}

/**
 * Returns what a channel shows, with its last 100 messages; null without a channel.
 *
 * @example
 * const view = useChannel(lobby)
 * return <ol>{view?.messages.map(({ at, data }) => <li key={at}>{String(data)}</li>)}</ol>
 */
export const useChannel = (channel: Channel | null): ChannelView | null => {
  const store = useMemo(
    (): Store<ChannelView | null> => (channel === null ? nothing : channelStore(channel)),
    [channel]
  )
  return useStore(store)
}
