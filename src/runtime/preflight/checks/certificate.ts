/** Whether a certificate and a private key match. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import * as v from 'valibot';
import { CurlewError } from '../../../core/errors.ts';
import type { Check } from '../check.ts';
import { readHostFile } from '../host.ts';
import { firstOutcome } from '../outcome.ts';

const KEY_PAIR_STATES = [
  'key-pair-missing',
  'key-pair-switched',
  'key-pair-encrypted',
  'key-pair-mismatch',
  'key-pair-invalid',
  'key-pair-valid',
] as const;

type KeyPairState = (typeof KEY_PAIR_STATES)[number];

const LIMIT = 1 << 20;

export const certificate: Check<KeyPairState> = {
  kind: 'certificate',
  settings: { certificatePath: 'text!', keyPath: 'text!' },
  collect: async (settings, host) => {
    try {
      const pem = await readHostFile(host, settings.text('certificatePath') ?? '', LIMIT);
      const key = await readHostFile(host, settings.text('keyPath') ?? '', LIMIT);
      return pem === undefined || key === undefined ? 'key-pair-missing' : pairState(pem, key);
    } catch (error) {
      if (error instanceof CurlewError) return 'key-pair-invalid';
      throw error;
    }
  },
  facts: v.picklist(KEY_PAIR_STATES),
  title: 'Certificate Key Pair',
  analyze: firstOutcome((when, state) => when === state),
};

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g;

/** The first block of a kind in a PEM file. */
function blockOf(text: string, isKind: (label: string) => boolean): string | undefined {
  return [...text.matchAll(BLOCK)].find(([, label = '']) => isKind(label))?.[0];
}

const isCertificate = (label: string): boolean => label === 'CERTIFICATE';
const isKey = (label: string): boolean => label === 'PRIVATE KEY' || label.endsWith(' PRIVATE KEY');

function pairState(certificateText: string, keyText: string): KeyPairState {
  const pem = blockOf(certificateText, isCertificate);
  if (pem === undefined) {
    return blockOf(certificateText, isKey) === undefined ? 'key-pair-invalid' : 'key-pair-switched';
  }
  const keyPem = blockOf(keyText, isKey);
  if (keyPem === undefined) {
    return blockOf(keyText, isCertificate) === undefined ? 'key-pair-invalid' : 'key-pair-switched';
  }
  const parsed = readCertificate(pem);
  if (parsed === undefined) return 'key-pair-invalid';
  const key = readKey(keyPem);
  if (key === undefined) return keyText.includes('ENCRYPTED') ? 'key-pair-encrypted' : 'key-pair-invalid';
  return parsed.checkPrivateKey(key) ? 'key-pair-valid' : 'key-pair-mismatch';
}

function readCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** Undefined also for a key that needs a password. */
function readKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
