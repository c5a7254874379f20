#!/usr/bin/env node
// The health check of the container image: exits with 0 if the server accepts messages.
try {
  const { ok } = await fetch('http://127.0.0.1:4780/healthz')
  process.exitCode = ok ? 0 : 1
} catch {
  process.exitCode = 1
}
