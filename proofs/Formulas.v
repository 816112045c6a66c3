(** The formulas that [privacy/sensitivity.py] and [privacy/places.py] compute, written once for any
    arithmetic.

    At the real numbers they are the bounds that the theorems are about. At the rational numbers Coq
    itself evaluates them, and [Bridge.v] proves that both are the same number; tests/proofs
    compares those values with what the program returns. *)

Require Import Reals QArith ZArith.

Record arithmetic := {
  number :> Type;
  whole : Z -> number;
  plus : number -> number -> number;
  minus : number -> number -> number;
  times : number -> number -> number;
  over : number -> number -> number;
  root : number -> number;
  at_most : number -> number -> bool;
}.

Inductive relation := ReplaceOne | AddRemove.

(** [sensitivity.py] calls these response, square, count and eigenvalue; X'X has weight 1. *)
Record weights (A : arithmetic) := { w : A; v : A; c : A; e : A }.
Arguments w {A}. Arguments v {A}. Arguments c {A}. Arguments e {A}.

Section Formulas.
Variable A : arithmetic.
Local Notation "a + b" := (plus A a b).
Local Notation "a - b" := (minus A a b).
Local Notation "a * b" := (times A a b).
Local Notation "a / b" := (over A a b).
Local Notation "# z" := (whole A z) (at level 5).

Definition square (a : A) : A := a * a.
Definition larger (a b : A) : A := if at_most A a b then b else a.

(** Squared norm of the longest t(x, y), for X = 1: W = wY/X, V = vY²/X². *)
Definition longest (W V : A) : A := #1 + W * W + V * V.

(** Squared diameter of the set of t(x, y), for X = 1. *)
Definition one_zero (W V : A) : A := #2 + W * W + V * V.
Definition opposite (W : A) : A := #2 + #2 * (W * W) + W * W * (W * W) / #2.
Definition smaller_response (W V : A) : A := (#1 - root A (#1 - #2 * (W * W) / (V * V))) / #2.
Definition parallel_at (W V t : A) : A := square (W * (#1 + t)) + square (V * (#1 - t * t)).
Definition parallel (W V : A) : A :=
  let both := #4 * (W * W) in
  if at_most A (V * V) (#2 * (W * W)) then both
  else larger both (parallel_at W V (smaller_response W V)).
Definition diameter (W V : A) : A :=
  if at_most A (W * W) (#2) then larger (opposite W) (one_zero W V)
  else larger (parallel W V) (one_zero W V).

(** How many times the longest t(x, y) one row can move statistics of groups of [k] rows. *)
Definition lever (rel : relation) (k : A) : A :=
  if at_most A k (#1) then #1
  else match rel with ReplaceOne => #4 * (k - #1) / k | AddRemove => (#6 * k - #5) / k end.

(** The squared sensitivity of statistics of rows with ‖x‖ ≤ X and |y| ≤ Y, in groups of [k]. *)
Definition rows_squared (rel : relation) (k W V : A) : A :=
  match rel with
  | ReplaceOne => if at_most A k (#1) then diameter W V else square (lever rel k) * longest W V
  | AddRemove => square (lever rel k) * longest W V
  end.
Definition eigenvalue_slack : A := #1 / #512.
Definition sensitivity_squared (rel : relation) (k X Y : A) (p : weights A) : A :=
  let W := w p * Y / X in
  let V := v p * (Y * Y) / (X * X) in
  let count := match rel with ReplaceOne => #0 | AddRemove => c p * c p end in
  let eigenvalue := e p * lever rel k * (#1 + eigenvalue_slack) in
  square (X * X) * rows_squared rel k W V + count + square (X * X * eigenvalue).

(** The largest weight at which y'y is free, squared; and where values lie: the squared weights of
    the number of rows and of Σu², and the squared sensitivity. *)
Definition free_square_weight_squared (X Y response : A) : A :=
  let W := response * Y / X in square (square (X / Y)) * (W * W + W * W * (W * W) / #2).
Definition places_count_weight_squared (columns : A) : A := columns.
Definition places_square_weight_squared : A := #2.
Definition places_squared (columns : A) : A := #4 * columns.

(** Contributions whose norm is at most C. *)
Definition clipped_sensitivity (rel : relation) (C : A) : A :=
  match rel with ReplaceOne => #2 * C | AddRemove => C end.
End Formulas.

Definition reals : arithmetic := {|
  number := R;
  whole := IZR;
  plus := Rplus;
  minus := Rminus;
  times := Rmult;
  over := Rdiv;
  root := sqrt;
  at_most := fun a b => if Rle_dec a b then true else false;
|}.

(** A rational root is one only where it is exact; [Bridge.v] asks for that. *)
Definition rational_root (q : Q) : Q := let r :=
  Qred q in Qmake (Z.sqrt (Qnum r)) (Pos.sqrt (Qden r)).
Definition rationals : arithmetic := {|
  number := Q;
  whole := inject_Z;
  plus := Qplus;
  minus := Qminus;
  times := Qmult;
  over := Qdiv;
  root := rational_root;
  at_most := Qle_bool;
|}.
