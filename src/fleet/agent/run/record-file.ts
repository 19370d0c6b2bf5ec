/** The file in which an agent keeps what it has obeyed. */
import { CurlewError } from '../../../core/errors.ts';
import { NO_RECORD, readAgentRecord, type AgentRecord } from '../../hub/agent-record.ts';
import { readOwnFile } from '../../../platform/files/state-file.ts';

const MAX_BYTES = 64 << 20;

export interface OnDisk {
  readonly record: AgentRecord;
  /** What the file has; empty for none. */
  readonly text: string;
}

/** The record in a file. `FILE_UNUSABLE` for what another version has written. */
export async function readRecord(file: string): Promise<OnDisk> {
  const bad = (what: string): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `cannot read ${file}: ${what}`, {
      hint: 'use the version of curlew that wrote it, or delete it: the agent then obeys what the hub has',
    });
  const text = await readOwnFile(file, MAX_BYTES);
  // An empty file is damage: without its record, an agent would obey what is older than it had.
  return text === undefined ? { record: NO_RECORD, text: '' } : { record: readAgentRecord(text, bad), text };
}
