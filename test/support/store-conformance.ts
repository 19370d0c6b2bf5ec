/** What every store promises, whatever holds it. Each test works below a prefix of its own. */
import { digestOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { openStoreSource } from '../../src/ship/store/source.ts';
import type { Store, Upload } from '../../src/ship/store/store.ts';
import * as assert from './assert.ts';
import { collect, collectItems } from './bytes.ts';
import type { Suite } from './suite.ts';

export interface ConformanceOptions {
  /** Named in the titles. */
  readonly name: string;
  /** Asked when tests run. */
  readonly store: () => Store;
  /** False where a server cannot keep two writers apart. */
  readonly exclusive?: boolean;
  /** Size of an object that is uploaded in several parts. */
  readonly large?: number;
}

const text = (value: string): Uint8Array => Buffer.from(value);

/** Bytes that can be read by range, in chunks of an odd size. */
export function uploadOf(data: Uint8Array, chunk = 65_521): Upload {
  return {
    size: data.byteLength,
    async *read(offset, length, { signal }) {
      for (let at = offset; at < offset + length; at += chunk) {
        signal.throwIfAborted();
        yield data.subarray(at, Math.min(at + chunk, offset + length));
      }
    },
  };
}

/** Bytes in which no two parts are equal. */
export function patterned(size: number, seed = 1): Buffer {
  const data = Buffer.alloc(size);
  let state = seed;
  for (let at = 0; at + 4 <= size; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    data.writeUInt32LE(state, at);
  }
  return data;
}

export function testStore(
  test: Suite,
  { name, store, exclusive = true, large = 20_000_003 }: ConformanceOptions,
): void {
  const read = async (key: string, signal: AbortSignal): Promise<string> =>
    (await collect((await store().get(key, { signal })).body)).toString();

  test(`${name}: an object has its bytes, size and metadata`, async ({ signal }) => {
    const metadata = { digest: digestOf('hello'), gitsha: 'abcdef0' };
    const put = await store().put('one/a-1.2+3 x.tar.gz', text('hello'), { metadata, signal });
    const head = await store().head('one/a-1.2+3 x.tar.gz', { signal });
    assert.equal([head?.size, head?.etag], [put.size, put.etag]);
    assert.equal({ ...head?.metadata, ...metadata }, head?.metadata);
    assert.is(head?.size, 5);
    assert.is(await read('one/a-1.2+3 x.tar.gz', signal), 'hello');
  });

  test(`${name}: an empty object is one`, async ({ signal }) => {
    const put = await store().put('empty/a', new Uint8Array(), { ifNoneMatch: '*', metadata: { a: 'b' }, signal });
    assert.is(put.size, 0);
    assert.is(await read('empty/a', signal), '');
    await store().copy('empty/a', 'empty/b', { ifNoneMatch: '*', signal });
    assert.equal((await store().head('empty/b', { signal }))?.metadata, { a: 'b' });
  });

  test(`${name}: a missing object is undefined from head, NOT_FOUND from get and copy`, async ({ signal }) => {
    assert.is(await store().head('none', { signal }), undefined);
    await assert.rejectsWith(store().get('none', { signal }), 'NOT_FOUND');
    await assert.rejectsWith(store().copy('none', 'other', { signal }), 'NOT_FOUND');
    await store().delete('none', { signal });
  });

  test(`${name}: a small object is read as a whole, one larger than the limit not`, async ({ signal }) => {
    const object = await store().put('whole/k', text('0123456789'), { metadata: { n: '1' }, signal });
    const stored = await store().read('whole/k', { limit: 10, signal });
    assert.is(Buffer.from(stored?.data ?? []).toString(), '0123456789');
    assert.equal([stored?.object.etag, stored?.object.size, stored?.object.metadata['n']], [object.etag, 10, '1']);
    await assert.rejectsWith(store().read('whole/k', { limit: 9, signal }), 'PACKAGE_INVALID', /larger than 9 bytes/);
    assert.is(await store().read('whole/none', { limit: 9, signal }), undefined);
    await store().put('whole/empty', text(''), { signal });
    assert.is((await store().read('whole/empty', { limit: 0, signal }))?.data.byteLength, 0);
  });

  test(`${name}: who knows source and target need not look at them, and finds out all the same`, async ({ signal }) => {
    const from = await store().put('known/a', text('bytes'), { metadata: { n: '1' }, signal });
    const known = { ifNoneMatch: '*', isFree: true, metadata: { n: '2' }, sourceSize: 5, signal } as const;
    await store().copy('known/a', 'known/b', { ...known, sourceIfMatch: from.etag });
    assert.is(await read('known/b', signal), 'bytes');
    assert.is((await store().head('known/b', { signal }))?.metadata['n'], '2');
    await assert.rejectsWith(
      store().copy('known/a', 'known/b', { ...known, sourceIfMatch: from.etag }),
      'STORE_CONFLICT',
    );
    const stale = { ...known, sourceIfMatch: '0'.repeat(32) };
    await assert.rejectsWith(store().copy('known/a', 'known/c', stale), 'STORE_CONFLICT');
    const plain = { ...stale, ifNoneMatch: undefined };
    await assert.rejectsWith(store().copy('known/a', 'known/c', plain), 'STORE_CONFLICT');
    await assert.rejectsWith(store().copy('known/none', 'known/c', stale), 'NOT_FOUND');
    for (const body of [text('two'), uploadOf(patterned(large))]) {
      const taken = store().put('known/b', body, { ifNoneMatch: '*', isFree: true, signal });
      await assert.rejectsWith(taken, 'STORE_CONFLICT', /known\/b/);
    }
    assert.is(await store().head('known/c', { signal }), undefined);
    assert.is(await read('known/b', signal), 'bytes');
  });

  test(`${name}: ranges are read, and one beyond the end is refused`, async ({ signal }) => {
    await store().put('range/k', text('0123456789'), { signal });
    const { body } = await store().get('range/k', { range: { offset: 3, length: 4 }, signal });
    assert.is((await collect(body)).toString(), '3456');
    const nothing = await store().get('range/k', { range: { offset: 10, length: 0 }, signal });
    assert.is((await collect(nothing.body)).byteLength, 0);
    await assert.rejectsWith(store().get('range/k', { range: { offset: 8, length: 3 }, signal }), 'STORE_CONFLICT');
  });

  test(`${name}: a source is pinned to the bytes that it was opened with`, async ({ signal }) => {
    await store().put('pin/k', text('one!'), { signal });
    const source = await openStoreSource(store(), 'pin/k', { signal });
    assert.is((await collect(source.read(0, 3, { signal }))).toString(), 'one');
    await store().put('pin/k', text('two!'), { signal });
    await assert.rejectsWith(collect(source.read(0, 3, { signal })), 'STORE_CONFLICT', /has changed/);
  });

  test(`${name}: a key that is taken is not written again, nor copied to`, async ({ signal }) => {
    const first = await store().put('taken/k', text('one'), { ifNoneMatch: '*', metadata: { n: '1' }, signal });
    for (const body of [text('two'), uploadOf(text('two')), uploadOf(patterned(large))]) {
      await assert.rejectsWith(
        store().put('taken/k', body, { ifNoneMatch: '*', signal }),
        'STORE_CONFLICT',
        /taken\/k already exists/,
      );
    }
    await store().put('taken/other', text('two'), { signal });
    await assert.rejectsWith(store().copy('taken/other', 'taken/k', { ifNoneMatch: '*', signal }), 'STORE_CONFLICT');
    const { checksum: _checksum, ...now } = (await store().head('taken/k', { signal })) ?? {};
    assert.equal(now, first);
    assert.is(await read('taken/k', signal), 'one');
  });

  test(`${name}: a value is swapped only from the one that was read`, async ({ signal }) => {
    const first = await store().put('swap/VERSION', text('v1'), { ifNoneMatch: '*', signal });
    const second = await store().put('swap/VERSION', text('v2'), { ifMatch: first.etag, signal });
    assert.not.equal(second.etag, first.etag);
    await assert.rejectsWith(
      store().put('swap/VERSION', text('v3'), { ifMatch: first.etag, signal }),
      'STORE_CONFLICT',
    );
    await assert.rejectsWith(store().put('swap/none', text('v3'), { ifMatch: first.etag, signal }), 'STORE_CONFLICT');
    assert.is(await read('swap/VERSION', signal), 'v2');
  });

  if (exclusive) {
    for (const [kind, size] of [
      ['small', 10],
      ['large', large],
    ] as const) {
      test(`${name}: of many writers of a ${kind} object one gets in`, async ({ signal }) => {
        const key = `race/${kind}`;
        const bodies = [1, 2, 3].map((seed) => patterned(size, seed));
        const results = await Promise.allSettled(
          bodies.map((body, by) =>
            store().put(key, uploadOf(body), { ifNoneMatch: '*', metadata: { by: String(by) }, signal }),
          ),
        );
        const won = results.flatMap(({ status }, by) => (status === 'fulfilled' ? [by] : []));
        const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
        assert.is(won.length, 1);
        for (const error of lost) {
          if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
        }
        assert.equal((await store().head(key, { signal }))?.metadata, { by: String(won[0]) });
        const { body } = await store().get(key, { signal });
        assert.is(digestOf(await collect(body)), digestOf(bodies[won[0] ?? -1] ?? ''));
      });
    }
  }

  test(`${name}: an object of several parts comes back as it went`, async ({ signal }) => {
    const data = patterned(large);
    const options = { ifNoneMatch: '*', digest: digestOf(data), metadata: { digest: digestOf(data) }, signal } as const;
    const put = await store().put('large/k', uploadOf(data), options);
    assert.equal(await store().head('large/k', { signal }), put);
    assert.is(put.size, large);
    const { body } = await store().get('large/k', { signal });
    assert.is(digestOf(await collect(body)), digestOf(data));
    const copy = await store().copy('large/k', 'large/copy', { ifNoneMatch: '*', sourceIfMatch: put.etag, signal });
    assert.equal(copy.metadata, { digest: digestOf(data) });
    const copied = await store().get('large/copy', { range: { offset: large - 5, length: 5 }, signal });
    assert.equal(await collect(copied.body), data.subarray(-5));
  });

  test(`${name}: a copy keeps metadata or gets other, and is refused from another source`, async ({ signal }) => {
    const from = await store().put('copy/a', text('bytes'), { metadata: { n: '1' }, signal });
    for (const ifNoneMatch of ['*', undefined] as const) {
      const kind = ifNoneMatch === undefined ? 'plain' : 'new';
      const copied = await store().copy('copy/a', `copy/${kind}`, { ifNoneMatch, sourceIfMatch: from.etag, signal });
      const head = await store().head(`copy/${kind}`, { signal });
      assert.equal([head?.size, head?.etag], [copied.size, copied.etag]);
      assert.is(head?.metadata['n'], '1');
      assert.is(copied.metadata['n'], '1');
      assert.is(await read(`copy/${kind}`, signal), 'bytes');
      await store().copy('copy/a', `copy/${kind}2`, { ifNoneMatch, metadata: { n: '2' }, signal });
      assert.is((await store().head(`copy/${kind}2`, { signal }))?.metadata['n'], '2');
      const other = { ifNoneMatch, sourceIfMatch: '0'.repeat(32), signal };
      await assert.rejectsWith(store().copy('copy/a', `copy/${kind}3`, other), 'STORE_CONFLICT');
      assert.is(await store().head(`copy/${kind}3`, { signal }), undefined);
    }
    await store().copy('copy/a', 'copy/a', { signal });
    await store().put('copy/a', text('other'), { signal });
    assert.is(await read('copy/new', signal), 'bytes');
  });

  test(`${name}: bytes that are not the ones announced leave nothing`, async ({ signal }) => {
    const digest = digestOf('y');
    await assert.rejectsWith(store().put('bad/k', text('x'), { digest, signal }), 'DIGEST_MISMATCH');
    const wrong = store().put('bad/k', uploadOf(patterned(large)), { digest, signal });
    await assert.rejectsWith(wrong, 'DIGEST_MISMATCH');
    for (const size of [10, large]) {
      const short: Upload = {
        ...uploadOf(text('1234')),
        size,
        read: () => uploadOf(text('1234')).read(0, 4, { signal }),
      };
      await assert.rejectsWith(store().put('bad/k', short, { signal }), 'FETCH_FAILED', /4 bytes instead of/);
      const failing: Upload = {
        size,
        async *read() {
          yield text('1234');
          throw new CurlewError('FILE_UNUSABLE', 'the disk is gone');
        },
      };
      await assert.rejectsWith(store().put('bad/k', failing, { signal }), 'FILE_UNUSABLE', /disk is gone/);
    }
    assert.is(await store().head('bad/k', { signal }), undefined);
    assert.equal(await collectItems(store().list('bad/', { signal })), []);
  });

  test(`${name}: a listing has the keys of a prefix in order, and no hidden ones`, async ({ signal }) => {
    for (const key of ['list/v1/b', 'list/v1/a', 'list/v1-2/c', 'list/w']) {
      await store().put(key, text(key), { ifNoneMatch: '*', signal });
    }
    const listed = await collectItems(store().list('list/v1', { signal }));
    assert.equal(
      listed.map(({ key }) => key),
      ['list/v1-2/c', 'list/v1/a', 'list/v1/b'],
    );
    for (const { key, size, etag } of listed) {
      assert.is(size, key.length);
      assert.is((await store().head(key, { signal }))?.etag, etag);
    }
    const all = await collectItems(store().list('', { signal }));
    assert.ok(all.every(({ key }) => !key.includes('.curlew')));
    assert.equal(await collectItems(store().list('list/none/', { signal })), []);
  });

  test(`${name}: a deleted object is gone, and its key free`, async ({ signal }) => {
    await store().put('delete/k', text('1'), { metadata: { a: 'b' }, ifNoneMatch: '*', signal });
    await store().delete('delete/k', { signal });
    assert.is(await store().head('delete/k', { signal }), undefined);
    assert.equal((await store().put('delete/k', text('1'), { ifNoneMatch: '*', signal })).metadata, {});
  });

  test(`${name}: what is cancelled ends with the reason`, async ({ signal }) => {
    const stop = new AbortController();
    const data = patterned(large);
    const body: Upload = {
      size: large,
      async *read() {
        yield data.subarray(0, large - 1);
        stop.abort(new CurlewError('CANCELLED', 'cancelled'));
        yield data.subarray(large - 1);
      },
    };
    await assert.rejectsWith(store().put('cancel/k', body, { signal: stop.signal }), 'CANCELLED');
    assert.is(await store().head('cancel/k', { signal }), undefined);
  });

  for (const key of ['../x', '/etc/x', 'a/../b', '', 'a//b', 'a\\b', '.curlew/x', 'a/.hidden', 'a\u0000b', 'a\nb']) {
    test(`${name}: the key ${JSON.stringify(key)} is refused by every call`, async ({ signal }) => {
      await assert.rejectsWith(store().head(key, { signal }), 'PACKAGE_INVALID');
      await assert.rejectsWith(store().get(key, { signal }), 'PACKAGE_INVALID');
      await assert.rejectsWith(store().put(key, text(''), { signal }), 'PACKAGE_INVALID');
      await assert.rejectsWith(store().copy('a', key, { signal }), 'PACKAGE_INVALID');
      await assert.rejectsWith(store().copy(key, 'b', { signal }), 'PACKAGE_INVALID');
      await assert.rejectsWith(store().delete(key, { signal }), 'PACKAGE_INVALID');
    });
  }
}
