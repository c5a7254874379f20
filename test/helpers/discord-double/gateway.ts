import type { Server } from 'node:http'
import { acceptWebSockets, type WebSocketPeer } from '../websocket-server.ts'
import { applicationId, guildId, self, type State } from './state.ts'

type Payload = { readonly op: number; readonly d: unknown; readonly s?: number; readonly t?: string }

type Session = { readonly id: string; readonly events: Payload[]; peer: WebSocketPeer | undefined }

export type GatewayDouble = {
  /** To every session; one that is away gets it when it resumes. False: there is no session that could. */
  dispatch(t: string, d: unknown): boolean
  readonly identified: { readonly intents: number }[]
  readonly resumed: { count: number }
  /** The line breaks; the session can be resumed. */
  drop(): void
  close(code: number): void
  /** op 7: come again. */
  askToReconnect(): void
  /** op 9: the session is no more. */
  invalidate(): void
  /** Nobody is told, but sessions can't be resumed any more: they last some minutes. */
  expire(): void
  readonly connections: number
  /** Nobody is let in as long as this is set. */
  shut: boolean
  /** The bot may not read messages: 4014. */
  withoutIntents: boolean
}

/** Discord's gateway, version 10, JSON, one shard: hello, identify, ready, heartbeats, resume, invalid session. */
export const createGateway = (server: Server, state: State, token: string): GatewayDouble => {
  const sessions = new Map<string, Session>()
  const peers = new Set<WebSocketPeer>()
  const identified: { intents: number }[] = []
  const resumed = { count: 0 }
  const tell = (session: Session, t: string, d: unknown): void => {
    const payload = { op: 0, t, d, s: session.events.length + 1 }
    session.events.push(payload)
    if (session.peer?.isOpen === true) session.peer.send(JSON.stringify(payload))
  }
  const identify = (peer: WebSocketPeer, d: { token: string; intents: number }): void => {
    if (d.token !== token) return peer.close(4004, 'Authentication failed.')
    if (double.withoutIntents) return peer.close(4014, 'Disallowed intent(s).')
    identified.push({ intents: d.intents })
    const session: Session = { id: `session-${sessions.size + 1}`, events: [], peer }
    sessions.set(session.id, session)
    const address = `ws://${peer.request.headers.host ?? ''}/gateway`
    tell(session, 'READY', {
      v: 10,
      user: { ...self, discriminator: '0', avatar: null, global_name: null },
      guilds: [{ id: guildId, unavailable: true }],
      session_id: session.id,
      resume_gateway_url: address,
      application: { id: applicationId, flags: 0 },
    })
    tell(session, 'GUILD_CREATE', guildOf(state))
  }
  const resume = (peer: WebSocketPeer, d: { token: string; session_id: string; seq: number }): void => {
    const session = sessions.get(d.session_id)
    if (d.token !== token) return peer.close(4004, 'Authentication failed.')
    if (session === undefined) return peer.send(JSON.stringify({ op: 9, d: false }))
    session.peer = peer
    resumed.count += 1
    for (const missed of session.events.slice(d.seq)) peer.send(JSON.stringify(missed))
    tell(session, 'RESUMED', {})
  }
  const double: GatewayDouble = {
    dispatch: (t, d) => {
      for (const session of sessions.values()) tell(session, t, d)
      return sessions.size > 0
    },
    identified,
    resumed,
    drop: () => peers.forEach((peer) => peer.drop()),
    close: (code) => peers.forEach((peer) => peer.close(code)),
    askToReconnect: () => peers.forEach((peer) => peer.send(JSON.stringify({ op: 7, d: null }))),
    invalidate: () => {
      sessions.clear()
      for (const peer of peers) peer.send(JSON.stringify({ op: 9, d: false }))
    },
    expire: () => sessions.clear(),
    get connections() {
      return peers.size
    },
    shut: false,
    withoutIntents: false,
  }
  acceptWebSockets(server, (peer) => {
    if (double.shut) return peer.drop()
    peers.add(peer)
    peer.onClose = (code) => {
      peers.delete(peer)
      // "Disconnecting" in Discord's documentation: 1000 and 1001 end the session; with any other code it can be resumed.
      const isGoodbye = code === 1000 || code === 1001
      for (const session of sessions.values()) if (session.peer === peer && isGoodbye) sessions.delete(session.id)
    }
    peer.onMessage = (text) => {
      const { op, d } = JSON.parse(text) as { op: number; d: never }
      if (op === 1) peer.send(JSON.stringify({ op: 11, d: null }))
      if (op === 2) identify(peer, d)
      if (op === 6) resume(peer, d)
    }
    peer.send(JSON.stringify({ op: 10, d: { heartbeat_interval: 41_250 } }))
  })
  return double
}

const guildOf = (state: State): unknown => {
  const channels = [...state.channels.values()].filter(({ guild_id }) => guild_id === guildId)
  const isThread = ({ type }: { type: number }): boolean => type >= 10 && type <= 12
  return {
    id: guildId,
    name: 'The workshop',
    owner_id: '1',
    roles: [],
    emojis: [],
    stickers: [],
    features: [],
    members: [],
    voice_states: [],
    presences: [],
    stage_instances: [],
    guild_scheduled_events: [],
    channels: channels.filter((one) => !isThread(one)),
    threads: channels.filter(isThread),
    member_count: 3,
    large: false,
    joined_at: new Date().toISOString(),
  }
}
