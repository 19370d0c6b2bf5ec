/**
 * To be preloaded (`node --import`): tells the moments of a run, before, inside and after each write of the journal, each
 * rename, taking and giving back of the lock, each file of an extraction and each start of a hook, and kills the process
 * at one of them.
 * KILL_LOG names the file that takes the moments; KILL_AT is the one to die at; KILL_MODE is `tree` when hooks die, too.
 */
import childProcess from 'node:child_process';
import { appendFileSync, writeSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const { KILL_AT, KILL_MODE, KILL_LOG } = process.env;
const children = new Set();
const seen = new Map();

function die() {
  if (KILL_MODE === 'tree') {
    for (const { pid, exitCode, signalCode } of children) {
      if (exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL');
    }
  }
  process.kill(process.pid, 'SIGKILL');
}

/** Names of runs and processes differ from run to run; moments of one name are told apart by a number. */
function moment(name) {
  const plain = name.replaceAll(/\d{8}T\d{6}Z-[0-9a-f]{4}/g, 'RUN').replaceAll(/lock\.[\w.-]+/g, 'lock.X');
  const number = (seen.get(plain) ?? 0) + 1;
  seen.set(plain, number);
  const label = `${plain} ${number}`;
  if (KILL_LOG !== undefined) appendFileSync(KILL_LOG, `${label}\n`);
  return label === KILL_AT;
}

function here(name) {
  if (moment(name)) die();
}

function around(kind, act) {
  return async (...args) => {
    const name = `${kind} ${String(args[0]).split('/').slice(-3).join('/')}`;
    here(`${name} before`);
    const result = await act(...args);
    here(`${name} after`);
    return result;
  };
}

const { open, spawn } = { open: fs.open, spawn: childProcess.spawn };
const { rename, rm } = fs;
const renamed = around('rename', rename);
// Between two entries of the journal nothing else happens than this rename: their moments are its own.
fs.rename = async (from, to) => (String(to).endsWith('/carried.sh') ? rename : renamed)(from, to);
fs.link = around('link', fs.link);

const watched = around('rm', rm);
fs.rm = async (path, options) => (/\/(?:lock|\.old-.*|\.new-.*)$/.test(String(path)) ? watched : rm)(path, options);

fs.open = async (path, flags, ...rest) => {
  const file = await open(path, flags, ...rest);
  const end = String(path).split('/').slice(-3).join('/');
  if (String(path).endsWith('/journal.jsonl') && String(flags).includes('a')) {
    let written = '';
    const append = file.appendFile.bind(file);
    file.appendFile = async (text) => {
      const { type, action = '' } = JSON.parse(text).entry;
      const name = `journal ${type} ${action}`;
      here(`${name} before`);
      if (moment(`${name} inside`)) {
        writeSync(file.fd, text.slice(0, text.length / 2));
        die();
      }
      await append(text);
      written = name;
    };
    const datasync = file.datasync.bind(file);
    file.datasync = async () => {
      await datasync();
      here(`${written} after`);
    };
  } else if (/\.new-/.test(String(path)) && typeof flags !== 'undefined' && flags !== 'r') {
    here(`extract ${end} opened`);
    const write = file.write.bind(file);
    file.write = async (...args) => {
      const result = await write(...args);
      here(`extract ${end} written`);
      return result;
    };
  }
  return file;
};

childProcess.spawn = (command, args, options) => {
  const child = spawn(command, args, options);
  if (options?.detached === true) {
    children.add(child);
    child.once('spawn', () => here(`spawn ${options.env.CURLEW_HOOK.split('/')[1]}`));
  }
  return child;
};

syncBuiltinESMExports();
