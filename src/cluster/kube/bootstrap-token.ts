/** Bootstrap tokens, in the format of kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens. */
import { randomInt } from 'node:crypto';
import type { Call } from './call.ts';
import { SECRETS } from './core-kinds.ts';
import { createObject, type LiveObject } from './objects.ts';

export interface BootstrapToken {
  readonly id: string;
  readonly secret: string;
}

export function newToken(): BootstrapToken {
  const randomText = (length: number): string => Array.from({ length }, () => randomInt(36).toString(36)).join('');
  return { id: randomText(6), secret: randomText(16) };
}

/** The Secret of the token with this ID. */
export function secretOfToken(id: string): { readonly namespace: string; readonly name: string } {
  return { namespace: 'kube-system', name: `bootstrap-token-${id}` };
}

/** Makes a token that its server accepts until `expiration`, with more fields of its Secret. Undefined if that exists. */
export async function createToken(
  call: Call,
  { id, secret }: BootstrapToken,
  fields: Readonly<Record<string, string>> & { readonly expiration: string },
  labels: Readonly<Record<string, string>> = {},
): Promise<LiveObject | undefined> {
  const named = secretOfToken(id);
  const own = { 'token-id': id, 'token-secret': secret, 'usage-bootstrap-authentication': 'true' };
  const value = {
    metadata: { ...named, labels },
    type: 'bootstrap.kubernetes.io/token',
    stringData: { ...own, ...fields },
  };
  return createObject(call, SECRETS, { ...named, value });
}
