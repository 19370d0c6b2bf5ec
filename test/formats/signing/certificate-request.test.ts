/** Requests for certificates: openssl reads them, and whatever differs from the one form in a byte is refused. */
import { execa } from 'execa';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { makeRequest, readRequest } from '../../../src/formats/signing/certificate-request.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('formats/signing/certificate-request');
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const SUBJECT = { commonName: 'curlew:cluster:paris:0123', organizations: ['curlew:clusters'] };
const lines = (text: string): string => text.replaceAll(/(.{64})/g, '$1\n');
const asPem = (bytes: Buffer): string =>
  `-----BEGIN CERTIFICATE REQUEST-----\n${lines(bytes.toString('base64')).trim()}\n-----END CERTIFICATE REQUEST-----\n`;
const bytesOf = (text: string): Buffer => Buffer.from(text.replaceAll(/-----[^-]*-----/g, ''), 'base64');

test('a request has a name, organizations and a key, and its signature is valid', async () => {
  const request = makeRequest(SUBJECT, privateKey);
  const { stdout } = await execa('openssl', ['req', '-verify', '-noout', '-text', '-subject'], {
    input: request,
    all: true,
  });
  assert.match(stdout, /subject=O ?= ?curlew:clusters, CN ?= ?curlew:cluster:paris:0123/);
  assert.match(stdout, /ecdsa-with-SHA256/);
  const found = readRequest(request);
  assert.equal(found?.subject, SUBJECT);
  assert.ok(found?.key.equals(createPublicKey(privateKey)));
});

test('names of any length are read as they were written', () => {
  for (const length of [1, 20, 60, 110, 127, 128, 255, 256, 300]) {
    const subject = { commonName: 'n'.repeat(length), organizations: ['o', 'p'.repeat(length)], units: ['u'] };
    assert.equal(readRequest(makeRequest(subject, privateKey))?.subject, subject);
  }
});

test('a request in which any byte is changed, missing or added is refused', () => {
  const bytes = bytesOf(makeRequest(SUBJECT, privateKey));
  for (const place of bytes.keys()) {
    const changed = Buffer.from(bytes);
    changed[place] = (bytes[place] ?? 0) ^ 1;
    assert.is(readRequest(asPem(changed)), undefined, `byte ${place}`);
    assert.is(readRequest(asPem(bytes.subarray(0, place))), undefined, `cut at ${place}`);
  }
  assert.is(readRequest(asPem(Buffer.concat([bytes, Buffer.from([0])]))), undefined);
  const pem = asPem(bytes);
  const filled = pem.replace('\n-----END', `${'\n'.repeat(8192 - pem.length)}\n-----END`);
  assert.is.not(readRequest(filled), undefined);
  assert.is(readRequest(`${filled}${pem}`), undefined);
});

test('requests of other programs with more names, extensions or another key are refused', async () => {
  await using box = await tree();
  const request = async (...args: readonly string[]): Promise<string> => {
    const common = ['req', '-new', '-nodes', '-keyout', box.at('key')];
    return (await execa('openssl', [...common, ...args])).stdout.replace(/\n?$/, '\n');
  };
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const subject = ['-subj', '/O=curlew:clusters/CN=curlew:cluster:paris:0123'];
  const bad = {
    'another order': [...ec, '-subj', '/CN=curlew:cluster:paris:0123/O=curlew:clusters'],
    'a part of another kind': [...ec, '-subj', '/C=DE/O=curlew:clusters/CN=curlew:cluster:paris:0123'],
    'two names': [...ec, '-subj', '/O=curlew:clusters/CN=curlew:cluster:paris:0123/CN=admin'],
    'names in extensions': [...ec, ...subject, '-addext', 'subjectAltName=DNS:kubernetes'],
    'another curve': ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384', ...subject],
    'an RSA key': ['-newkey', 'rsa:2048', ...subject],
  };
  for (const [what, args] of Object.entries(bad)) assert.is(readRequest(await request(...args)), undefined, what);
  for (const text of ['', 'x', '-----BEGIN CERTIFICATE REQUEST-----\n\n-----END CERTIFICATE REQUEST-----\n'])
    assert.is(readRequest(text), undefined);
});

test.run();
