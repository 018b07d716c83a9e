"""Which voice speaks on a recording: its wire format says, or else its content.

Read next: `provider_faults.py`, the faults that speak.
"""

from __future__ import annotations

from streamlab.errors import UsageError
from streamlab.streams.claude_voice import CLAUDE
from streamlab.streams.edit import frames
from streamlab.streams.gemini_interactions_voice import GEMINI_INTERACTIONS
from streamlab.streams.gemini_voice import GEMINI
from streamlab.streams.openai_chat_voice import OPENAI_CHAT
from streamlab.streams.openai_responses_voice import OPENAI_RESPONSES
from streamlab.streams.recording import Recording
from streamlab.streams.voice import Payload, Voice, payload_of
from streamlab.wire.reader import Reader

__all__ = ["VOICES", "payloads", "refused", "speaking", "voice_of"]

#: Every wire format's voice, by its name.
VOICES: dict[str, Voice] = {
    voice.wire: voice
    for voice in (CLAUDE, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI, GEMINI_INTERACTIONS)
}

#: Bytes that the reader is given at a time, until it knows the wire format.
PIECE = 4096


def voice_of(recording: Recording) -> Voice:
    """The voice of a recording's wire format; Claude's, where nobody can tell the format."""
    wire = recording.wire
    if wire is None:
        reader, data = Reader(), recording.data
        for at in range(0, len(data), PIECE):
            reader.feed(data[at : at + PIECE])
            if reader.wire is not None:
                break
        else:
            reader.end()
        wire = reader.wire
    return VOICES.get(wire or "", CLAUDE)


def refused(recording: Recording, fault: str) -> str:
    """Why a fault cannot be on this recording's wire, in a sentence; "" where it can."""
    return voice_of(recording).cannot.get(fault, "")


def speaking(recording: Recording, fault: str) -> Voice:
    """The voice of a recording. Raises `UsageError` where its wire cannot have this fault."""
    voice = voice_of(recording)
    if fault in voice.cannot:
        raise UsageError(voice.cannot[fault])
    return voice


def payloads(recording: Recording) -> list[Payload]:
    """What each frame of a recording holds."""
    return [payload_of(frame) for frame in frames(recording)]
